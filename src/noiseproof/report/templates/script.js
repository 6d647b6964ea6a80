"use strict";
// Draws each plot when it is scrolled into view, and handles the pointer, the keys and the buttons.
(() => {
  const page = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tooltip = document.getElementById("tooltip");
  const spoken = document.getElementById("spoken");
  const plots = new Map(); // from the element of a plot to its data and state
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");

  for (const element of document.querySelectorAll(".plot")) {
    const figure = element.closest(".chart");
    const panel = page.figures[figure.dataset.figure][Number(element.dataset.panel)];
    const xs = [...new Set((panel.curves || []).flatMap((curve) => page.xs[curve[1]]))];
    xs.sort((a, b) => a - b);
    plots.set(element, { element, figure, panel, xs, view: null, drawn: null, at: null, hidden: [] });
  }

  function rows(panel) {
    if (panel.rows) return panel.rows;
    return panel.curves.flatMap(([label, x, y, deviation]) =>
      page.xs[x].map((at, i) => ({
        label: page.labels[label], x: at, y: y[i], deviation: deviation ? deviation[i] : null,
      })),
    );
  }

  const styleOf = new Map(page.labels.map((label, i) => [label, page.styles[page.label_styles[i]]]));

  // The scales of a plot that depend on its data.
  function scalesOf(panel, name) {
    const found = panel.y_domain ? { y: { domain: panel.y_domain } } : {};
    const domain = [...new Set(rows(panel).map((row) => row.label))].filter((label) => styleOf.has(label));
    if (panel.rows && domain.length) found.y = { domain };
    if (domain.length) {
      found.color = { domain, range: domain.map((label) => styleOf.get(label)[name]) };
      found.strokeDash = { domain, range: domain.map((label) => styleOf.get(label).dash) };
    }
    return found;
  }

  async function draw(plot) {
    if (plot.drawn === theme()) return;
    const name = (plot.drawn = theme());
    const spec = page.specs[name][plot.panel.chart];
    const given = { rows: { values: rows(plot.panel) }, hidden: { value: plot.hidden } };
    const scale = scalesOf(plot.panel, name);
    const filled = {
      ...spec,
      scales: spec.scales.map((one) => ({ ...one, ...scale[one.name] })),
      data: spec.data.map((data) => ({ ...data, ...given[data.name] })),
      signals: spec.signals.map((signal) => ({ ...signal, ...given[signal.name] })),
    };
    const { view } = await vegaEmbed(plot.element, filled, {
      mode: "vega", renderer: "svg", actions: false, defaultStyle: false,
      tooltip: (_, event, item, text) => (text ? showText(event, String(text)) : hide()),
    });
    plot.view = view;
    plot.element.dataset.drawn = name;
  }

  function redraw() {
    hide();
    for (const plot of plots.values()) {
      if (!plot.drawn) continue;
      if (plot.view) plot.view.finalize();
      plot.view = null;
      draw(plot);
    }
  }

  // Shows the values of all curves at one x in the tooltip, and returns them as text.
  function readOff(plot, at, x, y) {
    plot.at = at;
    const found = [];
    for (const [label, xIndex, ys, deviations] of plot.panel.curves) {
      const i = page.xs[xIndex].indexOf(at);
      const name = page.labels[label];
      if (i >= 0 && ys[i] !== null && !plot.hidden.includes(name))
        found.push({ name, y: ys[i], deviation: deviations ? deviations[i] : null, swatch: swatchOf(plot, name) });
    }
    drawCursor(plot, found);
    found.sort((a, b) => b.y - a.y);
    const head = document.createElement("b");
    head.textContent = `${page.x_titles[plot.panel.chart]} ${at}`;
    const lines = found.map(({ name, y: value, deviation, swatch }) => {
      const row = document.createElement("div");
      row.className = "row";
      const number = document.createElement("span");
      number.className = "y";
      number.textContent = value.toFixed(2);
      if (deviation !== null) {
        const small = document.createElement("small");
        small.textContent = ` ± ${deviation.toFixed(2)}`;
        number.append(small);
      }
      row.append(swatch.cloneNode(true), name, number);
      return row;
    });
    show([head, ...lines], x, y);
    return [head.textContent, ...found.map((f) => `${f.name} ${f.y.toFixed(1)}`)].join(", ");
  }

  const swatchOf = (plot, name) => plot.figure.querySelector(`[data-label="${CSS.escape(name)}"] svg`);

  // The origin of the scales, in pixels of the chart.
  function scaleOrigin(plot) {
    const [left, top] = plot.view.origin();
    const padding = plot.view.padding();
    return [left + padding.left, top + padding.top];
  }

  // Draws a rule and a dot on every curve over the chart, so that Vega need not run again.
  function drawCursor(plot, found) {
    const svg = plot.element.querySelector("svg");
    const [x, y] = [plot.view.scale("x"), plot.view.scale("y")];
    const [left, top] = scaleOrigin(plot);
    const make = (name, values) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
      return node;
    };
    const at = left + x(plot.at);
    const [bottom, high] = y.range();
    const overlay = make("g", { class: "cursor" });
    overlay.append(make("line", { x1: at, x2: at, y1: top + high, y2: top + bottom }));
    for (const curve of found) {
      const cy = y(curve.y);
      if (cy < high || cy > bottom) continue;
      const dot = make("circle", { cx: at, cy: top + cy, r: 3.5 });
      dot.style.fill = getComputedStyle(curve.swatch).stroke;
      overlay.append(dot);
    }
    removeCursor(plot);
    svg.append(overlay);
  }

  const removeCursor = (plot) => plot.element.querySelectorAll(".cursor").forEach((old) => old.remove());

  function show(nodes, x, y) {
    tooltip.replaceChildren(...nodes);
    tooltip.hidden = false;
    const { width, height } = tooltip.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - width - 16 : x + 16;
    const top = Math.min(y + 12, innerHeight - height - 8);
    tooltip.style.left = `${Math.min(Math.max(8, left), Math.max(8, innerWidth - width - 8))}px`;
    tooltip.style.top = `${Math.max(8, top)}px`;
  }

  const showText = (event, text) => show([document.createTextNode(text)], event.clientX, event.clientY);

  function hide(plot) {
    tooltip.hidden = true;
    if (!plot) return;
    plot.at = null;
    removeCursor(plot);
  }

  const nearest = (xs, x) => xs.reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a));

  function zoom(plot, factor) {
    const names = { x: "zoom_x", y: "zoom_y" };
    for (const [axis, signal] of Object.entries(names)) {
      const [low, high] = plot.view.scale(axis).domain();
      const middle = (low + high) / 2, half = ((high - low) / 2) * factor;
      plot.view.signal(signal, factor ? [middle - half, middle + half] : null);
    }
    plot.view.runAsync();
  }

  for (const plot of plots.values()) {
    if (!plot.panel.curves) continue;
    const { element } = plot;
    element.addEventListener("pointermove", (event) => {
      const svg = plot.view && element.querySelector("svg");
      if (!svg) return;
      const inside = event.clientX - svg.getBoundingClientRect().left - scaleOrigin(plot)[0];
      const x = plot.view.scale("x").invert(inside);
      const [low, high] = plot.view.scale("x").domain();
      const seen = plot.xs.filter((at) => at >= low && at <= high);
      if (seen.length) readOff(plot, nearest(seen, x), event.clientX, event.clientY);
    });
    element.addEventListener("pointerleave", () => hide(plot));
    element.addEventListener("blur", () => hide(plot));
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey || !plot.view) return;
      if (step) {
        const last = plot.xs.length - 1;
        const from = plot.at === null ? (step > 0 ? -1 : last + 1) : plot.xs.indexOf(plot.at);
        const box = element.getBoundingClientRect();
        const at = plot.xs[Math.min(last, Math.max(0, from + step))];
        spoken.textContent = readOff(plot, at, box.left + box.width / 2, box.top + 20);
      } else if (event.key === "+" || event.key === "=") zoom(plot, 0.7);
      else if (event.key === "-") zoom(plot, 1 / 0.7);
      else if (event.key === "0") zoom(plot, 0);
      else if (event.key === "Escape") hide(plot);
      else return;
      event.preventDefault();
    });
  }

  for (const legend of document.querySelectorAll(".legend")) {
    const own = [...plots.values()].filter((plot) => plot.figure === legend.closest(".chart"));
    const signal = (name, value) => own.forEach((p) => p.view && p.view.signal(name, value).runAsync());
    for (const button of legend.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        const pressed = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!pressed));
        const hidden = [...legend.querySelectorAll('[aria-pressed="false"]')].map((b) => b.dataset.label);
        own.forEach((plot) => (plot.hidden = hidden));
        signal("focus", "");
        signal("hidden", hidden);
      });
      const focus = () => button.getAttribute("aria-pressed") === "true" && signal("focus", button.dataset.label);
      button.addEventListener("pointerenter", focus);
      button.addEventListener("focus", () => button.matches(":focus-visible") && focus());
      button.addEventListener("pointerleave", () => signal("focus", ""));
      button.addEventListener("blur", () => signal("focus", ""));
    }
  }

  // A row of the table of runs: a name, indices of words, numbers, and links.
  function lineOf([run, data, noise, loss, full, protocol, seed, accuracy, settings, machine]) {
    const line = document.createElement("tr");
    const head = line.appendChild(document.createElement("th"));
    head.scope = "row";
    head.appendChild(document.createElement("code")).textContent = run;
    const texts = [data, noise, loss, full, protocol].map((i) => page.words[i]);
    const number = typeof accuracy === "number" ? accuracy.toFixed(2) : accuracy;
    for (const text of [...texts, seed, number]) line.insertCell().textContent = text;
    for (const [kind, letter, i] of [["settings", "S", settings], ["machine", "M", machine]]) {
      const link = line.insertCell().appendChild(document.createElement("a"));
      link.href = `#${kind}-${i}`;
      link.textContent = letter + i;
    }
    return line;
  }

  // Fills in the table of runs when it is opened, and goes on when its end is scrolled into view.
  const runs = document.querySelector("details.runs");
  const [runsBox, runsBody] = [runs.querySelector(".scroll"), runs.querySelector("tbody")];
  function listMoreRuns() {
    const near = runsBox.scrollTop + runsBox.clientHeight > runsBox.scrollHeight - 600;
    const listed = runsBody.rows.length;
    if (near && listed < page.runs.length) runsBody.append(...page.runs.slice(listed, listed + 400).map(lineOf));
  }
  runs.addEventListener("toggle", listMoreRuns);
  runsBox.addEventListener("scroll", listMoreRuns);

  function setTheme(name) {
    root.dataset.theme = name;
    try { localStorage.setItem("noiseproof-theme", name); } catch (refused) { /* a private window */ }
    redraw();
  }
  document.getElementById("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  system.addEventListener("change", () => root.dataset.theme || redraw());

  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    const dark = theme() === "dark";
    root.dataset.theme = "light";
    if (dark) redraw();
    for (const plot of plots.values()) draw(plot);
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    if (theme() === "dark") redraw();
  });

  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      draw(plots.get(target));
    }
  }, { rootMargin: "600px" });
  for (const element of plots.keys()) observer.observe(element);
})();
