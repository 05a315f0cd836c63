"use strict";
// Follows a workspace: asks for its state every second. Whatever comes from it is set as text, never as markup.
(() => {
  const PERIOD = 1000; // milliseconds between two requests
  const { HEIGHT, element, note, dialogTurn, status, number, column, themeButton } = elements;
  const at = (id) => document.getElementById(id);

  function plain(id, columns, rows) {
    if (!rows.length) return at(id).replaceChildren(note("none yet"));
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
    const body = rows.map((row) => element("tr", {}, ...row.map((value) => (
      value instanceof Node ? value : element("td", typeof value === "number" ? { class: "number" } : {}, value)
    ))));
    const made = element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...body));
    return at(id).replaceChildren(element("div", { class: "scroll" }, made));
  }
  const bar = (value, max, label) => element("td", {},
    element("progress", { value, max: Math.max(1, max), "aria-label": label }), ` ${value} of ${max}`);
  const failing = (count) => element("td", { class: count ? "number failing" : "number" }, count);
  const share = (counts) => (counts.percent == null ? "-" : `${counts.percent} %`);

  // -- tables that keep their order, filters and place ---------------------------------------------------------------

  function table(id, columns, open) {
    const made = new Tabulator(at(id), {
      index: "id", layout: "fitDataFill", maxHeight: HEIGHT, placeholder: "none yet",
      columns: columns.map((one) => column(...one)),
      rowFormatter: (row) => {
        if (!open) return;
        const shown = row.getElement();
        shown.tabIndex = 0;
        shown.classList.add("tabulator-selectable");
        shown.onkeydown = (event) => { if (event.key === "Enter") open(row.getData().id); };
      },
    });
    if (open) made.on("rowClick", (_, row) => open(row.getData().id));
    const built = new Promise((done) => { made.on("tableBuilt", done); });
    let before = "";
    return async (rows) => {
      await built;
      const now = JSON.stringify(rows);
      if (now === before) return;
      before = now;
      await made.replaceData(rows);
    };
  }
  const showDialogs = table("dialogs", [
    ["overload"], ["campaign"], ["run"], ["stage"], ["turn"], ["latest_outcome"], ["calls", number], ["prompt_tokens", number],
    ["completion_tokens", number],
  ], openDialog);
  const showOverloads = table("overloads", [
    ["overload", { frozen: !matchMedia("(max-width: 640px)").matches, maxWidth: 700 }], ["trace"], ["platform"],
    ["state", { formatter: (cell) => status(cell.getValue()) }], ["cases", number], ["judged", number], ["failing", number], ["evidence"],
    ["reason", { maxWidth: 700 }],
  ]);

  // -- the dialog that is open ---------------------------------------------------------------------------------------

  let state = null;
  let opened = null; // its id, the size of its journal when it was fetched, and its turns as text
  async function openDialog(id) {
    opened = { id, size: -1, turns: [] };
    at("dialog").replaceChildren(element("h2", { id: "dialog-title", tabindex: "-1" }, "..."), element("div", { id: "turns" }));
    await followDialog();
    at("dialog-title").focus();
  }

  async function followDialog() {
    const row = opened && state.dialogs.find((one) => one.id === opened.id);
    if (!row || row.size === opened.size) return;
    const current = opened;
    const answer = await fetch(`dialog?id=${encodeURIComponent(current.id)}`);
    if (!answer.ok || current !== opened) return;
    const dialog = await answer.json();
    current.size = row.size;
    at("dialog-title").textContent = [dialog.overload, dialog.campaign, row.run].filter(Boolean).join(", ");
    const texts = dialog.turns.map((turn) => JSON.stringify(turn));
    let same = 0; // turns that are shown already stay as they are, with what the reader has opened in them
    while (same < texts.length && texts[same] === current.turns[same]) same += 1;
    const place = at("turns");
    while (place.children.length > same) place.lastChild.remove();
    place.append(...dialog.turns.slice(same).map(dialogTurn));
    current.turns = texts;
  }

  // -- the state -----------------------------------------------------------------------------------------------------

  const sum = (rows, key) => rows.reduce((total, row) => total + row[key], 0);
  function show() {
    const { models, campaigns, problems } = state;
    const parts = [];
    if (models.length) parts.push(`${sum(models, "judged")} of ${sum(models, "cases")} cases judged, ${sum(models, "failing")} failing`);
    if (campaigns.length) parts.push(`${sum(campaigns, "ended")} of ${sum(campaigns, "total")} operators ended, ${sum(campaigns, "failing")} failing`);
    at("progress").textContent = parts.join("; ") || "No trace and no campaign yet";
    at("problems").hidden = !problems.length;
    at("problems").replaceChildren(...problems.map((text) => element("li", {}, text)));
    plain("models", ["trace", "platform", "cases judged", "failing", "overloads covered", "share", "calls covered"],
      models.map((m) => [
        m.trace, m.platform, bar(m.judged, m.cases, `cases of ${m.trace} judged`), failing(m.failing),
        `${m.overloads.covered} of ${m.overloads.compute}`, share(m.overloads), share(m.calls),
      ]));
    plain("campaigns", ["campaign", "model", "operators ended", "passed", "failing", "calls", "prompt tokens", "completion tokens", "price"],
      campaigns.map((c) => [
        c.campaign || "enable refine", c.model || "-", bar(c.ended, c.total, `operators of ${c.campaign || "enable refine"} ended`),
        c.passed, failing(c.failing), c.calls, c.prompt_tokens, c.completion_tokens,
        c.money == null ? "no price set" : c.money.toFixed(4),
      ]));
    return Promise.all([showDialogs(state.dialogs), showOverloads(state.overloads)]);
  }

  let before = "";
  async function follow() {
    const line = at("status");
    try {
      const answer = await fetch("state");
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const text = await answer.text();
      if (text !== before) {
        before = text;
        state = JSON.parse(text);
        state.overloads.forEach((row) => { row.id = `${row.trace} ${row.platform} ${row.overload}`; });
        await show();
        line.dataset.changed = new Date().toLocaleTimeString();
      }
      await followDialog();
      line.textContent = `Latest change ${line.dataset.changed}`;
      line.className = "note";
    } catch (error) {
      line.textContent = `The server does not answer (${error.message}). This is the latest state; type: ${line.dataset.command}`;
      line.className = "note ended";
    }
    setTimeout(follow, PERIOD);
  }

  themeButton();
  follow();
})();
