"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { classes, rows, key } = data;
  const $ = (id) => document.getElementById(id);
  const HEIGHT = 44; // of a row of the list, in pixels
  const store = `noiseproof-audit-${key}`;
  let at = 0;
  let marks = {}; // of the index of a sample: what was decided, and the class it gets
  let kept = true; // whether the browser keeps them
  const past = []; // rows and what they were marked before, for undo

  const RANK = 0, INDEX = 1, NAME = 2, GIVEN = 3, SUGGESTED = 4, SCORE = 5, TOP = 6, KIND = 7, SHOWN = 8, WHO = 9;

  try {
    const found = JSON.parse(localStorage.getItem(store) || "{}");
    const known = new Set(rows.map((row) => String(row[INDEX])));
    for (const [index, mark] of Object.entries(found.marks || {})) {
      const right = ["keep", "drop", "change"].includes(mark.what) && Number.isInteger(mark.to) && mark.to >= 0 && mark.to < classes.length;
      if (right && known.has(index)) marks[index] = { what: mark.what, to: mark.to };
    }
    if (Number.isInteger(found.at) && found.at >= 0 && found.at < rows.length) at = found.at;
  } catch (refused) {
    kept = false;
  }

  function save() {
    try {
      localStorage.setItem(store, JSON.stringify({ at, marks }));
    } catch (refused) {
      if (kept) tell("This browser does not keep marks over a reload: export them before you close the page.");
      kept = false;
    }
  }

  function tell(text, code) {
    const note = $("note");
    note.textContent = text;
    if (code) {
      const shown = document.createElement("code");
      shown.textContent = code;
      note.append(" ", shown);
    }
    note.hidden = !text;
  }

  const percent = (p) => (p > 0.99 ? "> 99 %" : p < 0.01 ? "< 1 %" : `${Math.round(100 * p)} %`);

  function markText(mark, row) {
    if (!mark) return "";
    if (mark.what === "keep") return "kept";
    return mark.what === "drop" ? "dropped" : `→ ${classes[mark.to]}`;
  }

  function element(tag, text, name) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  function showSample(row) {
    const place = $("sample");
    place.replaceChildren();
    if (row[KIND] === "image") {
      const image = element("img");
      image.src = row[SHOWN];
      image.alt = `Sample ${row[NAME]}, given as ${classes[row[GIVEN]]}`;
      image.onload = () => image.classList.toggle("smooth", image.naturalWidth > 100);
      place.append(image);
    } else if (row[KIND] === "text") {
      place.append(element("p", row[SHOWN].join("\n")));
    } else if (row[KIND] === "row") {
      const table = element("table");
      for (const [column, value] of row[SHOWN]) {
        const line = element("tr");
        const head = element("th", column);
        head.scope = "row";
        line.append(head, element("td", value));
        table.append(line);
      }
      place.append(table);
    }
    place.scrollTop = 0;
  }

  function show() {
    const row = rows[at];
    if (!row) return;
    const mark = marks[row[INDEX]];
    $("rank").textContent = `${(at + 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    $("name").textContent = row[NAME] + (row[WHO] ? `, labelled by ${row[WHO]}` : "");
    showSample(row);
    $("given").textContent = classes[row[GIVEN]];
    $("suggested").textContent = $("target").textContent = classes[row[SUGGESTED]];
    $("wrongness").textContent = `How likely this label is wrong: ${percent(row[SCORE])}`;
    $("mark").textContent = markText(mark, row);
    const list = $("classes");
    list.replaceChildren(...row[TOP].map(([k, p], i) => {
      const item = element("li");
      const button = element("button");
      button.type = "button";
      const track = element("span", undefined, "track");
      const bar = element("i", undefined, k === row[GIVEN] ? "of-given" : "");
      bar.style.width = `${100 * p}%`;
      track.append(bar);
      button.append(element("kbd", String(i + 1)), element("span", classes[k], "name"), track, element("span", percent(p), "number"));
      button.setAttribute("aria-label", `${classes[k]}, ${percent(p)}${k === row[GIVEN] ? ", as given: keep" : ": change to it"}`);
      button.addEventListener("click", () => setClass(k));
      item.append(button);
      return item;
    }));
    for (const id of ["keep", "drop", "change"]) $(id).setAttribute("aria-pressed", String(Boolean(mark) && mark.what === id));
    $("typed").value = "";
    $("typed-help").textContent = "";
    reveal();
    showList();
    const done = Object.keys(marks).length;
    $("bar").value = done;
    $("done").textContent = `${done.toLocaleString("en")} of ${rows.length.toLocaleString("en")} decided`;
    $("undo").disabled = !past.length;
  }

  function reveal() {
    const list = $("list"), top = at * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
  }

  // Only the rows that are in view are there, however many suspects there are.
  function showList() {
    const list = $("list"), holder = $("rows");
    holder.style.height = `${rows.length * HEIGHT}px`;
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 3);
    const last = Math.min(rows.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + 3);
    const made = [];
    for (let i = first; i < last; i++) {
      const row = rows[i], mark = marks[row[INDEX]];
      const item = element("div");
      item.setAttribute("role", "listitem");
      item.setAttribute("aria-posinset", String(i + 1));
      item.setAttribute("aria-setsize", String(rows.length));
      const button = element("button", undefined, "row");
      button.type = "button";
      button.tabIndex = -1;
      button.style.top = `${i * HEIGHT}px`;
      if (i === at) button.setAttribute("aria-current", "true");
      button.append(
        element("span", String(i + 1), "n"),
        element("span", `${classes[row[GIVEN]]} → ${classes[row[SUGGESTED]]}`),
        element("span", mark ? markText(mark, row) : percent(row[SCORE]), "m"),
      );
      button.addEventListener("click", () => go(i));
      item.append(button);
      made.push(item);
    }
    holder.replaceChildren(...made);
  }

  function go(to) {
    at = Math.min(Math.max(to, 0), rows.length - 1);
    save();
    show();
  }

  function decide(what, to) {
    const row = rows[at];
    if (!row) return;
    past.push([at, marks[row[INDEX]] || null]);
    marks[row[INDEX]] = { what, to };
    if (at === rows.length - 1) {
      save();
      show();
      tell("That was the last one. Export the CSV file to go on.");
    } else {
      go(at + 1);
    }
  }

  function setClass(k) {
    decide(k === rows[at][GIVEN] ? "keep" : "change", k);
  }

  function undo() {
    const last = past.pop();
    if (!last) return;
    const [row, before] = last;
    if (before) marks[rows[row][INDEX]] = before;
    else delete marks[rows[row][INDEX]];
    tell("");
    go(row);
  }

  const actions = {
    change: () => decide("change", rows[at][SUGGESTED]),
    keep: () => decide("keep", rows[at][GIVEN]),
    drop: () => decide("drop", rows[at][GIVEN]),
    next: () => go(at + 1),
    previous: () => go(at - 1),
    undo,
    export: download,
  };
  for (const [id, action] of Object.entries(actions)) $(id).addEventListener("click", action);

  const keys = {
    j: "next", ArrowDown: "next", ArrowRight: "next", k: "previous", ArrowUp: "previous", ArrowLeft: "previous",
    c: "change", y: "keep", d: "drop", u: "undo", e: "export",
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === $("typed")) {
      if (event.key === "Escape") $("card").focus({ preventScroll: true });
      return;
    }
    const digit = Number(event.key);
    if (event.key === "/") $("typed").focus();
    else if (digit >= 1 && rows[at] && digit <= rows[at][TOP].length) setClass(rows[at][TOP][digit - 1][0]);
    else if (Object.hasOwn(keys, event.key)) actions[keys[event.key]]();
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(rows.length - 1);
    else return;
    event.preventDefault();
  });

  $("other").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = $("typed").value.trim().toLowerCase();
    if (!typed) return;
    const lower = classes.map((name) => name.toLowerCase());
    let found = lower.indexOf(typed);
    if (found < 0) {
      const close = lower.flatMap((name, k) => (name.startsWith(typed) ? [k] : []));
      if (close.length === 1) found = close[0];
      else $("typed-help").textContent = close.length ? `${close.length} classes begin so: ${close.slice(0, 5).map((k) => classes[k]).join(", ")}` : "no class begins so";
    }
    if (found >= 0) {
      setClass(found);
      $("card").focus({ preventScroll: true });
    }
  });

  // A text that a spreadsheet would compute gets an apostrophe before it, as noiseproof writes and reads it.
  function field(value) {
    const text = String(value);
    const formula = /^[=+\-@]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text);
    return `"${(formula ? "'" : "") + text.replaceAll('"', '""')}"`;
  }

  function csv() {
    const lines = ["index,name,given,decision,label"];
    for (const row of rows) {
      const mark = marks[row[INDEX]];
      if (!mark) continue;
      const label = mark.what === "drop" ? "" : classes[mark.what === "keep" ? row[GIVEN] : mark.to];
      lines.push([row[INDEX], field(row[NAME]), field(classes[row[GIVEN]]), mark.what, field(label)].join(","));
    }
    return lines.join("\n") + "\n";
  }

  function download() {
    const decided = Object.keys(marks).length;
    if (!decided) {
      tell("Nothing is decided yet: c changes a label, y keeps it, d drops the sample.");
      return;
    }
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = "corrections.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    tell(`corrections.csv has ${decided.toLocaleString("en")} decisions.` + (data.apply ? " Apply them with" : ""), data.apply);
  }

  $("known").replaceChildren(...classes.map((name) => {
    const option = element("option");
    option.value = name;
    return option;
  }));
  let waiting = false;
  $("list").addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; showList(); });
  });
  window.addEventListener("resize", showList);
  if (!kept) tell("This browser does not keep marks over a reload: export them before you close the page.");
  if (rows.length) show();
  else tell("No label is suspect.");
})();
