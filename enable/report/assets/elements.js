"use strict";
// Elements that the report and the live page share. Texts are set as text, never as markup.
const elements = (() => {
  const root = document.documentElement;
  const LONG = 4000; // characters of a message that is folded
  const HEIGHT = "60vh"; // of a table that scrolls

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return made;
  }
  const note = (text) => element("p", { class: "note" }, text);
  const fold = (title, ...children) => element("details", {}, element("summary", {}, title), ...children);
  const isEmpty = (value) => value == null || value === "" || value === "-" || (Array.isArray(value) && !value.length);

  function lines(text, { marked = [], kind = () => "" } = {}) {
    const made = element("pre", { tabindex: "0" });
    text.split("\n").forEach((line, i) => {
      const names = ["line", marked.includes(i + 1) ? "marked" : "", kind(line)].filter(Boolean).join(" ");
      made.append(element("span", { class: names, "data-number": i + 1 }, line));
    });
    return made;
  }
  const difference = (text) => lines(text, { kind: (line) => ({ "+": "added", "-": "removed" })[line[0]] || "" });

  // A message of a dialog: an answer as its difference from the one before, with its consequences.
  function dialogTurn(turn) {
    const shown = element("div", { class: "turn" }, element("strong", {}, turn.role));
    if (turn.diff) shown.append(difference(turn.diff), fold("the complete answer", lines(turn.text)));
    else if (turn.then || turn.text.length < LONG) shown.append(lines(turn.text));
    else shown.append(fold(`${turn.text.length} characters`, lines(turn.text)));
    shown.append(...(turn.then || []).map(note));
    return shown;
  }

  // Each kind of state has a sign beside its colour; failures are sorted first.
  const KINDS = { fail: "✗", none: "○", other: "–", pass: "✓" };
  function kind(state) {
    const known = {
      PASS: "pass", PASSED: "pass", "no kernel": "none", NOT_BEGUN: "none", SKIPPED: "other", "not run": "other", WAITING: "other",
      RUNNING: "other", "-": "other", "": "other",
    };
    return known[state ?? ""] ?? "fail";
  }
  function status(state) {
    if (isEmpty(state)) return document.createTextNode("-");
    const name = kind(state);
    return element("span", { class: `status ${name}` }, element("span", { "aria-hidden": "true" }, `${KINDS[name]} `), state);
  }

  // A column of a table. Its title, its head in CSV and its key in JSON are one name, the field's.
  const number = { hozAlign: "right", sorter: "number", headerFilterFunc: ">=", headerFilterPlaceholder: "at least" };
  const column = (field, options = {}) => ({
    title: field.replaceAll("_", " "), field, headerFilter: "input", headerFilterPlaceholder: "filter", maxWidth: 420, ...options,
  });

  // The button for the dark theme; `redraw` is called after a click.
  function themeButton(redraw = () => {}) {
    const button = document.getElementById("theme");
    const paint = (dark) => {
      root.dataset.theme = dark ? "dark" : "light";
      button.textContent = dark ? "Light" : "Dark";
      button.setAttribute("aria-pressed", dark);
    };
    button.onclick = () => {
      paint(root.dataset.theme !== "dark");
      redraw();
    };
    paint(matchMedia("(prefers-color-scheme: dark)").matches);
  }

  return { HEIGHT, KINDS, element, note, isEmpty, lines, dialogTurn, kind, status, number, column, themeButton };
})();
