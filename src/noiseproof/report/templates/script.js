"use strict";
// The page's own code: draws a panel when it comes near, and answers pointer, keys and buttons.
(() => {
  const page = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tooltip = document.getElementById("tooltip");
  const spoken = document.getElementById("spoken");
  const plots = new Map(); // the element of a plot -> what is known of it
  const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");

  for (const element of document.querySelectorAll(".plot")) {
    const figure = element.closest(".chart");
    const panel = page.figures[figure.dataset.figure][Number(element.dataset.panel)];
    const xs = [...new Set((panel.lines || []).flatMap((line) => page.xs[line[1]]))];
    xs.sort((a, b) => a - b);
    plots.set(element, { element, figure, panel, xs, view: null, drawn: null, at: null, hidden: [] });
  }

  function rows(panel) {
    if (panel.rows) return panel.rows;
    return panel.lines.flatMap(([label, x, y, d]) =>
      page.xs[x].map((at, i) => ({ l: page.labels[label], x: at, y: y[i], d: d ? d[i] : null })),
    );
  }

  async function draw(plot) {
    if (plot.drawn === theme()) return;
    const name = (plot.drawn = theme());
    const spec = page.charts[name][plot.panel.kind];
    const given = { rows: { values: rows(plot.panel) }, hidden: { value: plot.hidden } };
    const scale = plot.panel.y ? { y: { domain: plot.panel.y } } : {};
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

  // Reading lines off: the nearest point to the pointer, or the next one by the arrow keys.
  function read(plot, at, x, y) {
    plot.at = at;
    const found = [];
    for (const [label, grid, ys, ds] of plot.panel.lines) {
      const i = page.xs[grid].indexOf(at);
      const name = page.labels[label];
      if (i >= 0 && ys[i] !== null && !plot.hidden.includes(name))
        found.push({ name, y: ys[i], d: ds ? ds[i] : null, mark: markOf(plot, name) });
    }
    point(plot, found);
    found.sort((a, b) => b.y - a.y);
    const head = document.createElement("b");
    head.textContent = `${page.across[plot.panel.kind]} ${at}`;
    const lines = found.map(({ name, y: value, d, mark }) => {
      const row = document.createElement("div");
      row.className = "row";
      const number = document.createElement("span");
      number.className = "y";
      number.textContent = value.toFixed(2);
      if (d !== null) {
        const small = document.createElement("small");
        small.textContent = ` ± ${d.toFixed(2)}`;
        number.append(small);
      }
      row.append(mark.cloneNode(true), name, number);
      return row;
    });
    show([head, ...lines], x, y);
    return [head.textContent, ...found.map((f) => `${f.name} ${f.y.toFixed(1)}`)].join(", ");
  }

  const markOf = (plot, name) => plot.figure.querySelector(`[data-label="${CSS.escape(name)}"] svg`);

  // Where the scales begin, in the pixels of the chart.
  function corner(plot) {
    const [left, top] = plot.view.origin();
    const padding = plot.view.padding();
    return [left + padding.left, top + padding.top];
  }

  // A rule and a dot on every line, over the chart, so that reading runs nothing anew.
  function point(plot, found) {
    const svg = plot.element.querySelector("svg");
    const [x, y] = [plot.view.scale("x"), plot.view.scale("y")];
    const [left, top] = corner(plot);
    const make = (name, values) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
      return node;
    };
    const at = left + x(plot.at);
    const [bottom, high] = y.range();
    const overlay = make("g", { class: "reading" });
    overlay.append(make("line", { x1: at, x2: at, y1: top + high, y2: top + bottom }));
    for (const one of found) {
      const cy = y(one.y);
      if (cy < high || cy > bottom) continue;
      const dot = make("circle", { cx: at, cy: top + cy, r: 3.5 });
      dot.style.fill = getComputedStyle(one.mark).stroke;
      overlay.append(dot);
    }
    erase(plot);
    svg.append(overlay);
  }

  const erase = (plot) => plot.element.querySelectorAll(".reading").forEach((old) => old.remove());

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
    erase(plot);
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
    if (!plot.panel.lines) continue;
    const { element } = plot;
    element.addEventListener("pointermove", (event) => {
      const svg = plot.view && element.querySelector("svg");
      if (!svg) return;
      const inside = event.clientX - svg.getBoundingClientRect().left - corner(plot)[0];
      const x = plot.view.scale("x").invert(inside);
      const [low, high] = plot.view.scale("x").domain();
      const seen = plot.xs.filter((at) => at >= low && at <= high);
      if (seen.length) read(plot, nearest(seen, x), event.clientX, event.clientY);
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
        spoken.textContent = read(plot, at, box.left + box.width / 2, box.top + 20);
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

  function choose(name) {
    root.dataset.theme = name;
    try { localStorage.setItem("noiseproof-theme", name); } catch (refused) { /* a private window */ }
    redraw();
  }
  document.getElementById("theme").addEventListener("click", () => choose(theme() === "dark" ? "light" : "dark"));
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

  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      draw(plots.get(target));
    }
  }, { rootMargin: "600px" });
  for (const element of plots.keys()) near.observe(element);
})();
