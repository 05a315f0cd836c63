"use strict";
// The parts of the report's page: commands, tables, charts and the drawer. Texts are set as text, never as markup.
const widgets = (() => {
  const { HEIGHT, KINDS, element, isEmpty, kind, status, number, column } = elements;
  const root = document.documentElement;
  const main = document.getElementById("main");
  const drawer = document.getElementById("drawer");
  const details = document.getElementById("details");

  // -- elements ------------------------------------------------------------------------------------------------------

  const put = (...children) => main.append(...children);
  const note = (text) => put(elements.note(text));

  // A heading with an anchor, `view/words-of-the-heading`, for the index of the page.
  function heading(text) {
    const slug = String(text).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    const base = `${main.dataset.view}/${slug}`;
    let id = base;
    for (let i = 2; document.getElementById(id); i++) id = `${base}-${i}`;
    put(element("h2", { id, tabindex: "-1" }, text));
  }

  function facts(pairs) {
    const list = element("dl");
    for (const [name, value] of pairs) {
      if (!isEmpty(value)) list.append(element("dt", {}, name.replaceAll("_", " ")), element("dd", {}, value));
    }
    return list;
  }

  // -- commands ------------------------------------------------------------------------------------------------------

  const RANKS = Object.keys(KINDS);
  const failuresFirst = (rows, field) => [...rows].sort((a, b) => RANKS.indexOf(kind(a[field])) - RANKS.indexOf(kind(b[field])));

  // navigator.clipboard is missing on pages from a disk in some browsers; execCommand works there.
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = element("textarea", { readonly: "", "aria-hidden": "true", class: "offscreen" });
      area.value = text;
      (drawer.open ? drawer : document.body).append(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      return copied;
    }
  }

  function copyButton(text, name = "Copy") {
    const button = element("button", { type: "button", class: "copy", "aria-live": "polite", title: `Copy: ${text}` }, name);
    button.onclick = async (event) => {
      event.stopPropagation();
      button.textContent = (await copy(text)) ? "Copied" : "Not copied";
      button.focus();
      setTimeout(() => { button.textContent = name; }, 2000);
    };
    return button;
  }
  const command = (text) => element("span", { class: "command" }, copyButton(text), element("code", { tabindex: "0" }, text));

  // -- drawer --------------------------------------------------------------------------------------------------------

  let opener = null;

  // Shows details beside the page; `row` is the table row that gets the focus back.
  function openDrawer(title, parts, row = null) {
    if (row) {
      opener?.getElement().setAttribute("aria-expanded", "false");
      opener = row;
      opener.getElement().setAttribute("aria-expanded", "true");
    }
    emptyDrawer();
    document.getElementById("drawer-title").textContent = title;
    details.append(...parts);
    if (!drawer.open) drawer.showModal();
    drawer.scrollTop = 0;
    document.getElementById("drawer-title").focus();
  }

  function emptyDrawer() {
    for (const drawn of details.querySelectorAll(".chart")) Plotly.purge(drawn);
    details.replaceChildren();
  }

  document.getElementById("close").onclick = () => drawer.close();
  drawer.onclick = (event) => { if (event.target === drawer) drawer.close(); };
  drawer.onclose = () => {
    if (drawer.open) return; // opened again before this event came
    emptyDrawer();
    if (!opener) return;
    const shown = opener.getElement();
    shown.setAttribute("aria-expanded", "false");
    shown.focus();
    opener = null;
  };

  // -- tables --------------------------------------------------------------------------------------------------------

  const tables = [];
  window.addEventListener("resize", () => tables.forEach((made) => made.redraw()));
  const isNarrow = () => main.clientWidth < 640;
  const joined = { mutator: (value) => (Array.isArray(value) ? value.join(", ") : value) };
  const id = { identifies: true };
  const judged = { judged: true };
  const commands = { command: true, width: 230 };
  const formatters = {
    status: (cell) => status(cell.getValue()),
    command: (cell) => (isEmpty(cell.getValue()) ? "" : command(cell.getValue())),
  };

  function download(name, type, text) {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // A spreadsheet runs a cell that begins with one of these characters as a formula; an apostrophe makes it a text.
  function csvCell(value) {
    if (value == null) return "";
    let text = typeof value === "object" ? JSON.stringify(value) : String(value);
    if (/^[=+\-@\t\r]/.test(text) && !/^-\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }
  const csv = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

  function tools(name, table, columns) {
    const fields = columns.map(([field]) => field);
    const selected = () => table.getData("active");
    const asCsv = () => csv([fields, ...selected().map((row) => fields.map((field) => row[field]))]);
    const asJson = () => JSON.stringify(selected().map((row) => Object.fromEntries(fields.map((field) => [field, row[field]]))), null, 1);
    const bar = element("div", { class: "tools" });
    for (const [title, action] of [
      ["CSV", () => download(`${name}.csv`, "text/csv", asCsv())], ["JSON", () => download(`${name}.json`, "application/json", asJson())],
    ]) {
      const button = element("button", { type: "button", "aria-label": `Download ${name} as ${title}` }, title);
      button.onclick = action;
      bar.append(button);
    }
    return bar;
  }

  // The header of a group: its name, and the number of rows by kind of status.
  function groupHeader(field) {
    return (value, count, rows) => {
      const counts = RANKS.map((name) => [name, rows.filter((row) => kind(row[field]) === name).length]).filter(([, n]) => n);
      const words = { fail: "fail", none: "without a kernel", other: "not judged", pass: "pass" };
      const parts = counts.map(([name, n]) => element("span", { class: `status ${name}` }, `${n} ${words[name]}`));
      return element("span", { class: "group" }, element("strong", {}, value), ` ${count}: `, ...parts.flatMap((part, i) => (i ? [", ", part] : [part])));
    };
  }

  function cell([field, { identifies, judged: isStatus, command: isCommand, ...options } = {}], i, identifiers) {
    const style = isStatus ? { formatter: formatters.status } : isCommand ? { formatter: formatters.command, headerSort: false } : {};
    const width = Math.floor((main.clientWidth - 130) / identifiers);
    const fixed = identifies || isStatus;
    const shape = identifies ? { cssClass: "identifies", variableHeight: true, minWidth: 80, maxWidth: isNarrow() ? Math.max(80, width) : 420 } : {};
    return column(field, { headerWordWrap: true, formatter: "plaintext", responsive: fixed ? 0 : i + 1, ...shape, ...style, ...options });
  }

  // Columns: [field, options]. A click or Enter on a row opens the drawer; without `open` it lists all columns.
  function table(name, columns, rows, { open, groupBy } = {}) {
    const shown = columns.filter(([field]) => rows.some((row) => !isEmpty(row[field])));
    const stateField = shown.find(([, options]) => options?.judged)?.[0];
    const sorted = stateField ? failuresFirst(rows, stateField) : rows;
    const identifiers = shown.filter(([, options]) => options?.identifies).length || 1;
    const inner = element("div", { id: name });
    const show = (row) => (open ?? openRow)(row.getData(), row);
    const openRow = (values, row) => openDrawer(
      shown.filter(([, options]) => options?.identifies).map(([field]) => values[field]).join(", "),
      [facts(shown.map(([field, options]) => [field, isEmpty(values[field]) ? "" : options?.command ? command(values[field]) : options?.judged ? status(values[field]) : values[field]]))], row,
    );
    const outer = element("div", { class: "table" });
    put(outer);
    outer.append(inner);
    const made = new Tabulator(inner, {
      data: sorted.map((row) => ({ ...row })),
      layout: "fitDataFill",
      responsiveLayout: "hide",
      autoResize: false, // it redraws when charts appear, too, and a redraw takes the focus from a row
      height: rows.length > 14 ? HEIGHT : undefined,
      placeholder: "none",
      columns: shown.map((one, i) => cell(one, i, identifiers)),
      ...(groupBy ? { groupBy, groupHeader: groupHeader(stateField), groupToggleElement: "header" } : {}),
      rowFormatter: (row) => {
        if (row.getData === undefined || row.getElement().classList.contains("tabulator-group")) return;
        const drawn = row.getElement();
        drawn.tabIndex = 0;
        drawn.classList.add("tabulator-selectable");
        drawn.setAttribute("aria-controls", "drawer");
        drawn.setAttribute("aria-expanded", "false");
        drawn.onkeydown = (event) => { if (event.key === "Enter" && event.target === drawn) show(row); };
      },
    });
    made.on("rowClick", (event, row) => { if (!event.target.closest("a, button")) show(row); });
    if (groupBy) keyboardGroups(made, inner);
    outer.prepend(tools(name, made, shown));
    tables.push(made);
    return made;
  }

  // Tabulator's group headers answer clicks alone; this adds Enter, Space and the state for screen readers.
  function keyboardGroups(made, inner) {
    const describe = () => {
      for (const group of made.getGroups()) {
        const header = group.getElement();
        header.tabIndex = 0;
        header.setAttribute("aria-expanded", group.isVisible());
        header.onkeydown = (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          group.toggle();
        };
      }
    };
    made.on("tableBuilt", () => {
      describe();
      for (const event of ["renderComplete", "groupVisibilityChanged"]) made.on(event, describe);
    });
  }

  function groupsButtons(made) {
    const bar = element("div", { class: "tools" });
    for (const [title, action] of [["Collapse all", "hide"], ["Expand all", "show"]]) {
      const button = element("button", { type: "button" }, title);
      button.onclick = () => {
        // Tabulator makes new groups after each change, so they are looked up by key.
        for (const key of made.getGroups().map((group) => group.getKey())) made.getGroups().find((group) => group.getKey() === key)[action]();
      };
      bar.append(button);
    }
    return bar;
  }

  // -- charts --------------------------------------------------------------------------------------------------------

  // Plotly reads a little HTML in labels.
  const label = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const unlabel = (text) => String(text).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  // Okabe and Ito, Color Universal Design, 2008: hues that the colour-blind can tell apart.
  const SERIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442"];
  // Index 0 has the colour of a pass. If that is another hue of SERIES, as in dark mode, the two change places.
  const series = (i) => {
    const pass = color("pass");
    const hue = SERIES[i % SERIES.length];
    return i ? (hue === pass ? SERIES[0] : hue) : pass;
  };

  function numbers(traces) {
    const values = traces.flatMap((t) => (t.type === "heatmap" ? t.z.flat() : t.orientation === "h" ? t.x : t.y));
    return values.filter((value) => value != null).length;
  }

  // A single number is no chart: it is written as a text.
  function chart(name, traces, layout, height = 340) {
    if (numbers(traces) < 2) {
      const words = traces.flatMap((t) => (t.type === "heatmap" ? t.text.flat() : t.x.map((x, i) => (t.orientation === "h" ? `${t.y[i]}: ${x}` : `${x}: ${t.y[i]}`))));
      return note(`${layout.alt}: ${words.map(unlabel).join("; ") || "none"}`);
    }
    const drawn = element("div", { id: name, class: "chart", role: "img", "aria-label": layout.alt });
    put(drawn);
    draw(drawn, traces, layout, height);
  }

  function draw(drawn, traces, { alt, ...layout }, height) {
    const axis = { gridcolor: color("line"), zerolinecolor: color("line"), linecolor: color("line"), automargin: true };
    Plotly.react(drawn, traces, {
      paper_bgcolor: color("back"), plot_bgcolor: color("back"), font: { color: color("front"), size: 13 },
      margin: { l: 60, r: 20, t: 20, b: 50 }, height, showlegend: false, ...layout,
      xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
    }, { displayModeBar: false, responsive: true });
  }

  // A heat map of states, with a colour for each kind and the state as text.
  function heat(name, rows, columns, stateOf, alt) {
    if (!rows.length || !columns.length) return;
    const names = ["none", "pass", "other", "fail"];
    const z = rows.map((row) => columns.map((column) => (isEmpty(stateOf(row, column)) ? null : names.indexOf(kind(stateOf(row, column))))));
    const text = rows.map((row) => columns.map((column) => label(stateOf(row, column) ?? "")));
    const scale = names.map((k) => color(`${k}-text`)).flatMap((c, i) => [[i / 4, c], [(i + 1) / 4, c]]);
    const words = { fail: "fails", none: "no kernel", other: "not run", pass: "PASS" };
    put(element("p", { class: "legend" }, ...RANKS.map((k) => element("span", {}, element("span", { class: `swatch ${k}`, "aria-hidden": "true" }), `${KINDS[k]} ${words[k]}`))));
    chart(name, [{
      type: "heatmap", z, text, x: columns.map(label), y: rows.map((row) => label(row.overload)),
      texttemplate: rows.length <= 60 && columns.length <= 12 ? "%{text}" : undefined, textfont: { size: 10, color: color("back") },
      zmin: -0.5, zmax: 3.5, colorscale: scale, showscale: false, xgap: 1, ygap: 1,
      hovertemplate: "%{y}, %{x}: %{text}<extra></extra>", hoverongaps: false,
    }], { alt, yaxis: { autorange: "reversed", dtick: 1, tickfont: { size: 11 } }, xaxis: { side: "top", type: "category" }, margin: { t: 60 } },
    90 + 16 * rows.length);
  }

  // Says how a picture of wrong elements is drawn.
  function pictureScale(picture) {
    const shape = picture.shape.join(" x ") || "one number";
    const columns = picture.shape.at(-1) ?? 1;
    const rows = picture.shape.slice(0, -1).reduce((product, size) => product * size, 1);
    const drawn = picture.rows.length * picture.rows[0].length;
    return [
      `Shape ${shape}: decimal logarithm of the difference, in units of the largest expected value; blank where there is none.`,
      picture.shape.length > 2 ? "A row is a position in all dimensions but the last." : "",
      drawn < rows * columns ? `Each of the ${drawn} points shows the largest difference among about ${Math.round((rows * columns) / drawn)} elements.` : "",
    ].filter(Boolean).join(" ");
  }

  function clear() {
    while (tables.length) tables.pop().destroy();
    for (const drawn of main.querySelectorAll(".chart")) Plotly.purge(drawn);
    main.replaceChildren();
  }

  return {
    put, note, heading, facts, failuresFirst, copyButton, command, openDrawer, table, joined, id, judged, commands, groupsButtons,
    label, color, series, chart, draw, heat, pictureScale, clear, csvCell,
  };
})();
