"use strict";
// Shows the data of the page. Whatever comes from it is set as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const root = document.documentElement;

  // -- elements ------------------------------------------------------------------------------------------------------

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return made;
  }
  const put = (...children) => main.append(...children);
  const heading = (text) => put(element("h2", {}, text));
  const note = (text) => put(element("p", { class: "note" }, text));
  // What Plotly draws it reads as a little HTML.
  const label = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  // Okabe and Ito, Color Universal Design, 2008: hues that the colour-blind can tell apart.
  const SERIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442"];
  const series = (i) => (i ? SERIES[i % SERIES.length] : color("pass"));
  const share = (counts) => (counts.percent == null ? "-" : `${counts.percent} %`);

  function facts(pairs) {
    const list = element("dl");
    for (const [name, value] of pairs) {
      if (value === "" || value == null) continue;
      list.append(element("dt", {}, name), element("dd", {}, value));
    }
    return list;
  }

  function plain(columns, rows) {
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
    const cells = (row) => row.map((v) => element("td", typeof v === "number" ? { class: "number" } : {}, v ?? "-"));
    const body = rows.map((row) => element("tr", {}, ...cells(row)));
    const made = element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...body));
    return element("div", { class: "scroll" }, made);
  }

  function lines(text, marked = [], kind = () => "") {
    const made = element("pre", { tabindex: "0" });
    text.split("\n").forEach((line, i) => {
      const names = ["line", marked.includes(i + 1) ? "marked" : "", kind(line)].filter(Boolean).join(" ");
      made.append(element("span", { class: names, "data-number": i + 1 }, line));
    });
    return made;
  }
  const difference = (text) => lines(text, [], (line) => (line[0] === "+" ? "added" : line[0] === "-" ? "removed" : ""));

  // -- tables and charts ---------------------------------------------------------------------------------------------

  const tables = [];

  // columns: [title, field, options]. A row is opened by a click or by Enter.
  function table(id, columns, rows, open, height = "60vh") {
    const place = element("div", { id });
    put(place);
    const made = new Tabulator(place, {
      data: rows,
      layout: "fitDataFill",
      height: rows.length > 14 ? height : undefined,
      placeholder: "nothing",
      columns: columns.map(([title, field, options = {}]) => ({
        title, field, headerFilter: "input", headerFilterPlaceholder: "filter", maxWidth: 420, ...options,
      })),
      rowFormatter: (row) => {
        if (!open) return;
        const shown = row.getElement();
        shown.tabIndex = 0;
        shown.classList.add("tabulator-selectable");
        shown.onkeydown = (event) => { if (event.key === "Enter") open(row.getData()); };
      },
    });
    if (open) made.on("rowClick", (_, row) => open(row.getData()));
    tables.push(made);
    return made;
  }
  const number = { hozAlign: "right", sorter: "number", headerFilterFunc: ">=", headerFilterPlaceholder: "at least" };
  const joined = { formatter: "plaintext", mutator: (value) => (Array.isArray(value) ? value.join(", ") : value) };

  function chart(id, traces, layout, height = 340) {
    const place = element("div", { id, class: "chart", role: "img", "aria-label": layout.alt });
    put(place);
    draw(place, traces, layout, height);
    return place;
  }

  function draw(place, traces, { alt, ...layout }, height) {
    const axis = { gridcolor: color("line"), zerolinecolor: color("line"), linecolor: color("line"), automargin: true };
    Plotly.react(place, traces, {
      paper_bgcolor: color("back"), plot_bgcolor: color("back"), font: { color: color("front"), size: 13 },
      margin: { l: 60, r: 20, t: 20, b: 50 }, height, showlegend: false, ...layout,
      xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
    }, { displayModeBar: false, responsive: true });
  }

  // A heat map of states: rows by columns, with a colour and a word for each.
  const STATES = ["no kernel", "PASS", "not run", "fails"];
  function code(state) {
    if (state == null || state === "") return null;
    const known = { "no kernel": 0, PASS: 1, SKIPPED: 2, "not run": 2 };
    return known[state] ?? 3;
  }
  function heat(id, rows, columns, state, alt) {
    if (!rows.length || !columns.length) return;
    const palette = ["none", "pass", "other", "fail"].map(color);
    const z = rows.map((row) => columns.map((column) => code(state(row, column))));
    const text = rows.map((row) => columns.map((column) => label(state(row, column) ?? "not called")));
    const scale = palette.flatMap((c, i) => [[i / 4, c], [(i + 1) / 4, c]]);
    put(element("p", { class: "note" }, STATES.map((s, i) => `${["grey", "blue", "amber", "orange"][i]}: ${s}`).join(", ")));
    chart(id, [{
      type: "heatmap", z, text, x: columns.map(label), y: rows.map((row) => label(row.overload)),
      zmin: -0.5, zmax: 3.5, colorscale: scale, showscale: false, xgap: 1, ygap: 1,
      hovertemplate: "%{y}, %{x}: %{text}<extra></extra>",
    }], { alt, yaxis: { autorange: "reversed", tickfont: { size: 11 } }, xaxis: { side: "top", type: "category" }, margin: { t: 60 } },
    Math.max(200, 90 + 15 * rows.length));
  }

  // -- views ---------------------------------------------------------------------------------------------------------

  const several = data.platforms.length > 1;
  const onPlatform = several ? [["platform", "platform"]] : [];

  function overview() {
    if (data.changes) {
      const since = data.changes;
      heading(`Since ${since.since}`);
      note(`${since.gained} overloads more pass, ${since.lost} fewer`);
      if (since.rows.length) {
        table("changes", [["overload", "overload"], ...onPlatform, ["before", "before"], ["now", "now"]], since.rows);
      }
    }
    heading("Models");
    const before = data.changes ? data.changes.models.map((m) => [share({ percent: m.before })]) : data.models.map(() => []);
    const rows = data.models.map((m, i) => [
      m.name, m.platform, `${m.overloads.covered} of ${m.overloads.compute}`, ...before[i], share(m.overloads), share(m.calls),
      m.time_percent == null ? "-" : `${m.time_percent} %`, m.command,
    ]);
    const heads = ["model", "platform", "overloads", ...(data.changes ? ["share before"] : []), "share", "calls", "estimated time"];
    put(plain([...heads, "again"], rows));
    if (data.models.length > 1) {
      const bars = data.platforms.map((platform, i) => {
        const of = data.models.filter((m) => m.platform === platform);
        return {
          type: "bar", name: label(platform), x: of.map((m) => label(m.name)), y: of.map((m) => m.overloads.percent),
          marker: { color: series(i) },
        };
      });
      chart("shares", bars, {
        alt: "Share of overloads covered, by model", showlegend: several, barmode: "group",
        yaxis: { title: { text: "overloads covered (%)" }, range: [0, 100] }, xaxis: { type: "category" },
      });
    }
    heading("What is missing, the most worth first");
    if (!data.missing.length) note("nothing");
    else {
      table("missing", [
        ["overload", "overload"], ...onPlatform, ["lacking", "lacking", joined], ["calls", "calls", number],
        ["time %", "percent", number], ["state", "state"], ["next", "next", { maxWidth: 560 }],
      ], data.missing, (row) => openOverload(row));
    }
    put(element("div", { id: "opened" }));
  }

  function overloads() {
    heading("Overloads");
    note("A click on a head sorts, a click on a row opens it.");
    const dtypes = [...new Set(data.overloads.flatMap((row) => Object.keys(row.dtypes)))].sort();
    const rows = data.overloads.map((row) => ({ ...row, dtype: Object.keys(row.dtypes).join(" ") }));
    table("overloads", [
      ["overload", "overload", { frozen: true }], ...onPlatform, ["state", "state"], ["layer", "layer"],
      ["calls", "calls", number], ["dtypes", "dtype"], ["cases", "cases", number], ["variants", "variants", number],
      ["error / ATen's", "accuracy", number], ["speed / ATen's", "speed", number], ["kernel", "kernel"],
      ["origin", "origin"], ["detail", "detail"],
    ], rows, (row) => openOverload(row));
    put(element("div", { id: "opened" }));
    for (const platform of data.platforms) {
      const of = data.overloads.filter((row) => row.platform === platform);
      const on = several ? ` on ${platform}` : "";
      heading(`By dtype${on}`);
      heat(`dtypes-${platform}`, of, dtypes, (row, d) => row.dtypes[d], "Outcome of each overload by dtype");
      heading(`By model${on}`);
      const names = [...new Set(of.flatMap((row) => Object.keys(row.models)))];
      heat(`models-${platform}`, of, names, (row, m) => row.models[m], "Outcome of each overload by model");
    }
  }

  function openOverload(asked) {
    const row = data.overloads.find((r) => r.overload === asked.overload && r.platform === asked.platform);
    const place = document.getElementById("opened");
    place.replaceChildren(element("h2", { id: "opened-title", tabindex: "-1" }, row.overload), facts([
      ["platform", row.platform], ["verdict", row.verdict], ["detail", row.detail], ["refused by", row.layer],
      ["kernel", row.kernel], ["origin", row.origin], ["independent cases", row.independent],
      ["variants compiled", row.variants], ["largest error, in ATen's own", row.accuracy], ["speed against ATen", row.speed],
      ["dtypes", Object.entries(row.dtypes).map(([d, s]) => `${d}: ${s}`).join(", ")],
      ["models", Object.entries(row.models).map(([m, s]) => `${m}: ${s}`).join(", ")],
    ]));
    data.failures.forEach((failure, i) => {
      if (failure.overload !== row.overload || failure.platform !== row.platform) return;
      const button = element("button", { type: "button" }, `Its failing case in ${failure.trace}`);
      button.onclick = () => { select("failures"); openFailure(i); };
      place.append(button);
    });
    document.getElementById("opened-title").focus();
  }

  function failing() {
    heading("Failing cases");
    if (!data.failures.length) return note("none");
    const rows = data.failures.map((failure, index) => ({ ...failure, index }));
    table("failing", [
      ["overload", "overload"], ...onPlatform, ["trace", "trace"], ["outcome", "outcome"], ["layer", "layer"],
      ["detail", "detail", { maxWidth: 700 }],
    ], rows, (row) => openFailure(row.index), "40vh");
    put(element("div", { id: "failure" }));
  }

  function openFailure(index) {
    const failure = data.failures[index];
    const place = document.getElementById("failure");
    place.replaceChildren(element("h2", { id: "failure-title", tabindex: "-1" }, `${failure.overload}: ${failure.outcome}`));
    place.append(facts([
      ["what", failure.detail], ["refused by", failure.layer], ["rule", failure.rule], ["case", failure.case],
      ["trace", failure.trace], ["kernel", failure.kernel],
    ]));
    place.append(element("h2", {}, "To run it again"), element("pre", { tabindex: "0" }, failure.again));
    if (failure.picture) {
      place.append(element("h2", {}, "Where the answer differs"));
      const shape = failure.picture.shape.join(" x ") || "one number";
      place.append(element("p", { class: "note" },
        `of ${shape}: the decimal logarithm of the difference, in units of the largest value; blank where it is none`));
      const drawn = element("div", { id: "picture", class: "chart", role: "img", "aria-label": "Where the answer differs" });
      place.append(drawn);
      draw(drawn, [{
        type: "heatmap", z: failure.picture.rows, colorscale: "Cividis", hoverongaps: false,
        colorbar: { title: { text: "log10" } },
      }], { yaxis: { autorange: "reversed", title: { text: "row" } }, xaxis: { title: { text: "column" } } },
      Math.max(160, Math.min(520, 90 + 16 * failure.picture.rows.length)));
    }
    place.append(element("h2", {}, "Report, with the case's arguments"), element("pre", { tabindex: "0" }, failure.report));
    const text = data.kernels[failure.kernel];
    if (text != null) {
      place.append(element("h2", {}, `Kernel, ${failure.kernel}`), lines(text, failure.lines));
      const marked = place.querySelector(".marked");
      if (marked) marked.parentNode.scrollTop = Math.max(0, marked.offsetTop - marked.parentNode.offsetTop - 80);
    }
    document.getElementById("failure-title").focus();
  }

  function opinfo() {
    for (const one of data.opinfo) {
      heading(`OpInfo, ${one.trace} on ${one.platform}`);
      const total = one.operators;
      note(`${total.covered} of ${total.total} operators (${share(total)}); forward ${total.forward.covered} of `
        + `${total.forward.total}, backward ${total.backward.covered} of ${total.backward.total}`);
      const names = one.categories.map((c) => label(c.category));
      chart(`categories-${one.platform}`, [
        { type: "bar", name: "this library", x: names, y: one.categories.map((c) => c.percent), marker: { color: color("pass") } },
        { type: "bar", name: "TritorX, published", x: names, y: one.categories.map((c) => c.published), marker: { color: color("none") } },
      ], {
        alt: "OpInfo operators covered by category, beside published figures", barmode: "group", showlegend: true,
        yaxis: { title: { text: "operators (%)" }, range: [0, 100] }, xaxis: { type: "category" },
      });
      put(plain(["category", "covered", "of", "%", "published %"],
        one.categories.map((c) => [c.category, c.covered, c.total, c.percent, c.published])));
      heading("Operators that are not covered");
      table(`operators-${one.platform}`, [
        ["operator", "name"], ["category", "category"], ["samples", "samples", number], ["state", "state"],
        ["detail", "detail", { maxWidth: 700 }],
      ], one.rows);
    }
  }

  function campaigns() {
    heading("Operators that pass, by LLM calls");
    chart("cdf", data.campaigns.map((c, i) => ({
      type: "scatter", mode: "lines", line: { shape: "hv", color: series(i) },
      name: label(`${c.campaign} (${c.total})`), x: [0, ...c.within.map((_, n) => n + 1)], y: [0, ...c.within],
    })), {
      alt: "Share of operators that pass within so many LLM calls", showlegend: true,
      xaxis: { title: { text: "LLM calls of an operator" } }, yaxis: { title: { text: "operators (%)" }, range: [0, 100] },
    });
    put(plain(["campaign", "model", "passed", "of", "%", "calls", "tokens", "model s", "tests s"], data.campaigns.map((c) => [
      c.campaign, c.model, c.passed, c.total, c.percent, c.calls, c.tokens, c.seconds.model, c.seconds.tests,
    ])));
    for (const c of data.campaigns) {
      heading(`${c.campaign}: answers by what judged them`);
      const outcomes = Object.entries(c.outcomes);
      chart(`outcomes-${c.campaign}`, [{
        type: "bar", x: outcomes.map(([o]) => label(o)), y: outcomes.map(([, n]) => n), marker: { color: color("pass") },
      }], { alt: "Answers by outcome", yaxis: { title: { text: "answers" } }, xaxis: { type: "category" } }, 260);
      put(plain(["feedback", "answers", "answered again", "got further"],
        Object.entries(c.feedback).map(([k, f]) => [k, f.answers, f.answered_again, f.got_further])));
    }
    heading("Dialogs");
    const rows = data.dialogs.map((dialog, index) => ({ ...dialog, index }));
    table("dialogs", [
      ["overload", "overload"], ["campaign", "campaign"], ["stage", "stage"], ["calls", "calls", number],
      ["tokens", "tokens", number], ["detail", "detail"],
    ], rows, (row) => openDialog(row.index), "40vh");
    put(element("div", { id: "dialog" }));
  }

  function openDialog(index) {
    const dialog = data.dialogs[index];
    const place = document.getElementById("dialog");
    place.replaceChildren(element("h2", { id: "dialog-title", tabindex: "-1" }, `${dialog.overload}, ${dialog.campaign}`));
    for (const turn of dialog.turns) {
      const shown = element("div", { class: "turn" }, element("strong", {}, turn.role));
      if (turn.diff) {
        shown.append(difference(turn.diff), element("details", {}, element("summary", {}, "the whole answer"), lines(turn.text)));
      } else if (turn.then || turn.text.length < 4000) shown.append(lines(turn.text));
      else shown.append(element("details", {}, element("summary", {}, `${turn.text.length} characters`), lines(turn.text)));
      for (const line of turn.then || []) shown.append(element("p", { class: "note" }, line));
      place.append(shown);
    }
    document.getElementById("dialog-title").focus();
  }

  // The candidates of a search, level by level: a circle for each, its line to what it came from.
  function drawn(name, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function tree(search) {
    const depth = {}, levels = [];
    for (const node of search.nodes) {
      depth[node.number] = node.parents.length ? depth[node.parents[0]] + 1 : 0;
      (levels[depth[node.number]] ||= []).push(node);
    }
    const width = 130 * Math.max(...levels.map((level) => level.length)), height = 96 * levels.length;
    const place = {};
    levels.forEach((level, y) => level.forEach((node, x) => {
      place[node.number] = [(width * (x + 0.5)) / level.length, 96 * y + 26];
    }));
    const picture = drawn("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Candidates of ${search.overload}`,
    });
    for (const node of search.nodes) {
      node.parents.forEach((parent, i) => picture.append(drawn("line", {
        x1: place[parent][0], y1: place[parent][1], x2: place[node.number][0], y2: place[node.number][1],
        stroke: color("line"), "stroke-width": 2, "stroke-dasharray": i ? "4 4" : "none",
      })));
    }
    for (const node of search.nodes) {
      const [x, y] = place[node.number];
      const right = node.mean > 0;
      picture.append(drawn("circle", { cx: x, cy: y, r: 14, fill: color(right ? "pass" : "fail") }));
      const words = [`${node.number}, ${node.move}`, right ? `${node.mean.toFixed(2)} x, ${(100 * node.reward).toFixed(0)} % of limit` : node.outcome];
      words.forEach((text, i) => {
        picture.append(drawn("text", { x, y: y + 30 + 14 * i, "text-anchor": "middle", fill: color("front"), "font-size": 11 }, text));
      });
    }
    return element("div", { class: "scroll tree" }, picture);
  }

  function tuning() {
    for (const search of data.searches) {
      heading(`${search.overload}, ${search.run}`);
      note(`${search.device}; ${search.skills ? "with" : "without"} skills. A number is how many times as fast a candidate is as the `
        + "kernel in force, a broken line a second parent; of the limit: what the GPU could do at best.");
      if (search.open.length) note(`candidate ${search.open.join(", ")} has begun and not ended`);
      put(tree(search));
      put(plain(["candidate", "move", "from", "outcome", "times as fast", "noise %", "% of the limit", "calls", "learned", "detail"],
        search.nodes.map((n) => [
          n.number, n.move, n.parents.join(", ") || "-", n.outcome, n.mean || "-", +(100 * n.noise).toFixed(2),
          +(100 * n.reward).toFixed(1), n.calls, n.learned, n.detail,
        ])));
    }
  }

  function performance() {
    heading("Speed against ATen");
    note("Above 1 the library is faster. The mark is where the call would be if its bytes and operations took no longer than "
      + "the GPU's best; it stands at 5 where it is beyond. The 60 slowest calls that are not bound by their launch.");
    const rows = data.performance.map((r) => ({
      ...r, ratio: +(r.aten / r.library).toFixed(3), limit: +(r.aten / r.least).toFixed(3),
    })).sort((a, b) => a.ratio - b.ratio);
    const shown = rows.filter((r) => !r.launch_bound).slice(0, 60);
    const names = shown.map((r) => label(`${r.overload} ${r.dtype} ${r.shapes}`.slice(0, 60)));
    chart("speed", [
      { type: "bar", orientation: "h", name: "against ATen", y: names, x: shown.map((r) => r.ratio), marker: { color: color("pass") } },
      { type: "scatter", mode: "markers", name: "at the limit", y: names, x: shown.map((r) => Math.min(r.limit, 5)), marker: { color: color("fail"), symbol: "line-ns-open", size: 13, line: { width: 3 } } },
    ], {
      alt: "The slowest calls against ATen, with what the limit would allow", showlegend: true,
      xaxis: { title: { text: "times ATen's speed" } }, yaxis: { type: "category", autorange: "reversed", tickfont: { size: 11 } },
      shapes: [{ type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: color("faint"), dash: "dot" } }],
    }, Math.max(200, 90 + 18 * shown.length));
    table("figures", [
      ["overload", "overload"], ["dtype", "dtype"], ["shapes", "shapes"], ["ATen us", "aten", number],
      ["library us", "library", number], ["limit us", "least", number], ["against ATen", "ratio", number], ["place", "place"],
    ], rows);
  }

  function traces() {
    for (const [i, trace] of data.traces.entries()) {
      heading(`${trace.name}`);
      note(`${trace.model} on ${trace.device}: ${trace.calls} calls, ${trace.stored} of them stored`);
      if (trace.timeline.length) {
        const deepest = Math.max(...trace.timeline.map(([, depth]) => depth));
        const of = (around) => trace.timeline.filter(([, , , , kind]) => (kind === "around") === around);
        const bars = (slices, name) => ({
          type: "bar", orientation: "h", name, base: slices.map((s) => s[2]), x: slices.map((s) => s[3]),
          y: slices.map((s) => s[1]), text: slices.map((s) => label(s[0])), textposition: "inside", insidetextanchor: "start",
          hovertemplate: "%{text}: %{x:.1f} us<extra></extra>", width: 0.95, marker: { color: color(name), line: { width: 0 } },
        });
        chart(`timeline-${i}`, [bars(of(true), "none"), bars(of(false), "pass")], {
          alt: "Stored calls by step, phase and module", barmode: "overlay", dragmode: "pan",
          xaxis: { title: { text: "estimated microseconds on a nominal chip, of the stored calls" } },
          yaxis: { autorange: "reversed", showticklabels: false }, uniformtext: { minsize: 8, mode: "hide" },
        }, 120 + 26 * (deepest + 1));
      } else note("too many stored calls to draw as a timeline");
      chart(`memory-${i}`, trace.phases.map((phase, p) => ({
        type: "bar", orientation: "h", name: label(phase || "no phase"), y: trace.memory.map((m) => label(m.module)),
        x: trace.memory.map((m) => m.bytes[p]), marker: { color: series(p) },
      })), {
        alt: "Bytes of inputs by module and phase", barmode: "stack", showlegend: true,
        xaxis: { title: { text: "bytes of the inputs of stored calls" } }, yaxis: { type: "category", autorange: "reversed" },
      }, Math.max(220, 100 + 18 * trace.memory.length));
      chart(`dtypes-of-${i}`, [{
        type: "bar", x: Object.keys(trace.dtypes).map(label), y: Object.values(trace.dtypes), marker: { color: color("pass") },
      }], { alt: "Tensors by dtype", yaxis: { title: { text: "tensors" } }, xaxis: { type: "category" } }, 240);
      chart(`sizes-${i}`, [{
        type: "bar", x: Object.keys(trace.sizes).map((n) => (n === "-1" ? "none" : `2^${n}`)), y: Object.values(trace.sizes),
        marker: { color: color("pass") },
      }], { alt: "Tensors by size", yaxis: { title: { text: "tensors" } }, xaxis: { type: "category", title: { text: "elements" } } }, 260);
    }
  }

  // -- tabs and themes -----------------------------------------------------------------------------------------------

  const views = [
    ["overview", "Overview", overview, true],
    ["overloads", "Overloads", overloads, data.overloads.length],
    ["failures", `Failing cases (${data.failures.length})`, failing, data.overloads.length],
    ["opinfo", "OpInfo", opinfo, data.opinfo.length],
    ["campaigns", "Campaigns", campaigns, data.campaigns.length],
    ["tuning", "Search for speed", tuning, data.searches.length],
    ["performance", "Performance", performance, data.performance.length],
    ["traces", "Traces", traces, data.traces.length],
  ].filter(([, , , any]) => any);
  const tabs = document.getElementById("tabs");
  let current = views[0][0];

  function select(name) {
    current = name;
    while (tables.length) tables.pop().destroy();
    for (const place of main.querySelectorAll(".chart")) Plotly.purge(place);
    main.replaceChildren();
    for (const tab of tabs.children) {
      const chosen = tab.dataset.view === name;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
    views.find(([view]) => view === name)[2]();
    history.replaceState(null, "", `#${name}`);
  }

  for (const [name, title] of views) {
    const tab = element("button", { type: "button", role: "tab", "aria-controls": "main" }, title);
    tab.dataset.view = name;
    tab.onclick = () => select(name);
    tabs.append(tab);
  }
  tabs.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = views.map(([name]) => name);
    const next = names[(names.indexOf(current) + step + names.length) % names.length];
    select(next);
    [...tabs.children].find((tab) => tab.dataset.view === next).focus();
  };

  const theme = document.getElementById("theme");
  function paint(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    theme.textContent = dark ? "Light" : "Dark";
    theme.setAttribute("aria-pressed", dark);
  }
  theme.onclick = () => { paint(root.dataset.theme !== "dark"); select(current); };
  paint(matchMedia("(prefers-color-scheme: dark)").matches);
  const asked = location.hash.slice(1);
  select(views.some(([name]) => name === asked) ? asked : current);
})();
