"use strict";
// Shows the data of the page, one view at a time.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const { element, lines, dialogTurn, status, number, themeButton } = elements;
  const {
    put, note, heading, facts, failuresFirst, copyButton, command, openDrawer, table, joined, id, judged, commands, groupsButtons,
    label, color, series, chart, draw, heat, pictureScale, clear,
  } = widgets;
  const share = (percent) => (percent == null ? "" : `${percent} %`);
  const several = data.platforms.length > 1;
  const onPlatform = several ? [["platform", id]] : [];
  const wide = { maxWidth: 700 };

  // A kernel file's path relative to the page, as a link if the file existed when the page was written.
  function kernelLink(path) {
    const link = data.links[path];
    return link ? element("a", { href: link.href }, link.text) : document.createTextNode(path ?? "");
  }
  const kernel = { formatter: (cell) => kernelLink(cell.getValue()), maxWidth: 260 };

  // -- overview ------------------------------------------------------------------------------------------------------

  function overview() {
    heading("Models");
    const rows = data.models.map((m, i) => {
      const line = data.headlines[i];
      return {
        model: line.model, platform: m.platform, operators: line.total ? `${line.covered} of ${line.total}` : "none needed",
        missing: line.missing, trend: line.trend, calls_covered: share(m.calls.percent), time_covered: share(m.time_percent), command: m.command,
      };
    });
    table("models", [
      ["model", id], ["platform", id], ["operators", { responsive: 0 }], ["missing", number], ["trend"], ["calls_covered"], ["time_covered"],
      ["command", commands],
    ], rows);
    if (data.models.length > 1) {
      const bars = data.platforms.map((platform, i) => {
        const of = data.headlines.filter((line) => line.platform === platform);
        return {
          type: "bar", name: label(platform), x: of.map((line) => label(line.model)), y: of.map((line) => line.percent), marker: { color: series(i) },
        };
      });
      chart("shares", bars, {
        alt: "Share of operators covered, by model, as in the headlines", showlegend: several, barmode: "group",
        yaxis: { title: { text: "operators covered (%)" }, range: [0, 100] }, xaxis: { type: "category" },
      });
    }
    heading("Missing operators");
    if (!data.missing.length) note("Nothing is missing.");
    else {
      note("Operators without a correct kernel: failing kernels first, then by the number of models and the estimated time.");
      table("missing", [
        ["overload", id], ...onPlatform, ["state", judged], ["time_percent", number], ["calls", number], ["models", joined], ["reason", wide],
        ["command", commands],
      ], data.missing, { open: openOverload });
    }
    if (data.changes) changes(data.changes);
  }

  function changes(since) {
    heading(`Changes since ${since.since}`);
    note(`${since.gained} overloads more pass, ${since.lost} fewer.`);
    if (!since.rows.length) return;
    table("changes", [
      ["overload", id], ...onPlatform, ["state", judged], ["reason", wide], ["earlier_state", { ...judged, responsive: 2 }],
    ], since.rows);
  }

  // -- overloads -----------------------------------------------------------------------------------------------------

  function overloads() {
    heading("Overloads by category");
    note("A click on a head sorts, a click or Enter on a row shows its details, on a category folds it.");
    const dtypes = [...new Set(data.overloads.flatMap((row) => Object.keys(row.dtypes)))].sort();
    const rows = data.overloads.map((row) => ({ ...row, dtypes: Object.keys(row.dtypes).join(" ") }));
    const made = table("overloads", [
      ["overload", id], ...onPlatform, ["state", judged], ["evidence"], ["reason"], ["category", { visible: false }], ["layer"], ["calls", number],
      ["kernel", kernel], ["dtypes"], ["cases", number], ["variants", number], ["error_ratio", number], ["speedup", number], ["origin"],
    ], rows, { open: openOverload, groupBy: "category" });
    document.getElementById("overloads").before(groupsButtons(made));
    for (const platform of data.platforms) {
      const of = failuresFirst(data.overloads.filter((row) => row.platform === platform), "state");
      const on = several ? ` on ${platform}` : "";
      heading(`By dtype${on}`);
      heat(`dtypes-${platform}`, of, dtypes, (row, d) => row.dtypes[d], "Outcome of each overload by dtype");
      heading(`By model${on}`);
      const names = [...new Set(of.flatMap((row) => Object.keys(row.models)))];
      heat(`models-${platform}`, of, names, (row, m) => row.models[m], "Outcome of each overload by model");
    }
  }

  function openOverload(clicked, opener) {
    const row = data.overloads.find((r) => r.overload === clicked.overload && r.platform === clicked.platform);
    const missing = data.missing.find((r) => r.overload === clicked.overload && r.platform === clicked.platform);
    const failures = data.failures.filter((f) => f.overload === row.overload && f.platform === row.platform);
    const buttons = failures.map((failure) => {
      const button = element("button", { type: "button" }, `Failing case in ${failure.trace}`);
      button.onclick = () => openFailure(failure);
      return button;
    });
    openDrawer(row.overload, [
      facts([
        ["state", status(row.state)], ["evidence", row.evidence], ["reason", row.reason], ["platform", row.platform], ["category", row.category],
        ["layer", row.layer], ["kernel", row.kernel ? kernelLink(row.kernel) : ""], ["origin", row.origin], ["calls", row.calls],
        ["independent cases", row.independent], ["variants", row.variants], ["error_ratio", row.error_ratio], ["speedup", row.speedup],
        ["dtypes", pairs(row.dtypes)], ["models", pairs(row.models)], ["command", missing ? command(missing.command) : ""],
      ]), ...buttons,
    ], opener);
  }
  const pairs = (states) => Object.entries(states).map(([name, text]) => `${name}: ${text}`).join(", ");

  // -- failing cases -------------------------------------------------------------------------------------------------

  function failing() {
    heading("Failing cases");
    if (!data.failures.length) return note("No case fails.");
    const rows = data.failures.map((failure, index) => ({ ...failure, index }));
    table("failing", [
      ["overload", id], ...onPlatform, ["trace", id], ["state", judged], ["reason", wide], ["layer"], ["kernel", kernel], ["command", commands],
    ], rows, { open: (row, opener) => openFailure(data.failures[row.index], opener) });
  }

  function openFailure(failure, opener = null) {
    const picture = failure.picture && element("div", { id: "picture", class: "chart", role: "img", "aria-label": "Where the result differs" });
    const text = data.kernels[failure.kernel];
    const source = text == null ? [] : [element("h3", {}, "Kernel"), kernelLink(failure.kernel), lines(text, { marked: failure.lines })];
    openDrawer(`${failure.overload}: ${failure.state}`, [
      facts([
        ["state", status(failure.state)], ["reason", failure.reason], ["layer", failure.layer], ["rule", failure.rule],
        ["case", failure.case], ["trace", failure.trace], ["platform", failure.platform], ["kernel", kernelLink(failure.kernel)],
      ]),
      element("h3", {}, "Run it again"), command(failure.command),
      ...(picture ? [element("h3", {}, "Where the result differs"), elements.note(pictureScale(failure.picture)), picture] : []),
      element("h3", {}, "Report, with the case's arguments"), element("pre", { tabindex: "0" }, failure.report), ...source,
    ], opener);
    if (picture) drawPicture(picture, failure.picture);
    const marked = document.querySelector("#details .marked");
    if (marked) marked.parentNode.scrollTop = Math.max(0, marked.offsetTop - marked.parentNode.offsetTop - 80);
  }

  function drawPicture(place, picture) {
    const values = picture.rows.flat();
    if (values.length < 2) return place.replaceWith(element("p", {}, `log10 of the difference: ${values[0]}`));
    draw(place, [{ type: "heatmap", z: picture.rows, colorscale: "Cividis", hoverongaps: false, colorbar: { title: { text: "log10" } } }],
      { yaxis: { autorange: "reversed", title: { text: "row" } }, xaxis: { title: { text: "column" } } },
      Math.max(160, Math.min(520, 90 + 16 * picture.rows.length)));
  }

  // -- OpInfo --------------------------------------------------------------------------------------------------------

  function opinfo() {
    for (const one of data.opinfo) {
      heading(`OpInfo, ${one.trace} on ${one.platform}`);
      const total = one.operators;
      note(`${total.covered} of ${total.total} operators (${share(total.percent)}); forward ${total.forward.covered} of `
        + `${total.forward.total}, backward ${total.backward.covered} of ${total.backward.total}`);
      const names = one.categories.map((c) => label(c.category));
      chart(`chart-${one.trace}-${one.platform}`, [
        { type: "bar", name: "this library", x: names, y: one.categories.map((c) => c.percent), marker: { color: color("pass") } },
        { type: "bar", name: "TritorX, published", x: names, y: one.categories.map((c) => c.published_percent), marker: { color: color("none") } },
      ], {
        alt: "OpInfo operators covered by category, beside published figures", barmode: "group", showlegend: true,
        yaxis: { title: { text: "operators (%)" }, range: [0, 100] }, xaxis: { type: "category" },
      });
      table(`categories-${one.trace}-${one.platform}`, [
        ["category", id], ["covered", number], ["total", number], ["percent", number], ["published_percent", number],
      ], one.categories);
      heading("Operators that are not covered");
      if (!one.rows.length) note("Every operator is covered.");
      else {
        table(`operators-${one.trace}-${one.platform}`, [
          ["operator", id], ["state", judged], ["reason", wide], ["category"], ["samples", number],
        ], one.rows);
      }
    }
  }

  // -- campaigns -----------------------------------------------------------------------------------------------------

  function campaigns() {
    heading("Operators that pass, by LLM calls");
    chart("cdf", data.campaigns.map((c, i) => ({
      type: "scatter", mode: "lines", line: { shape: "hv", color: series(i) },
      name: label(`${c.campaign} (${c.total})`), x: [0, ...c.within.map((_, n) => n + 1)], y: [0, ...c.within],
    })), {
      alt: "Share of operators that pass within a number of LLM calls", showlegend: true,
      xaxis: { title: { text: "LLM calls of an operator" } }, yaxis: { title: { text: "operators (%)" }, range: [0, 100] },
    });
    table("campaigns", [
      ["campaign", id], ["passed", number], ["total", number], ["percent", number], ["model"], ["calls", number], ["tokens", number],
      ["model_seconds", number], ["tests_seconds", number],
    ], data.campaigns.map((c) => ({ ...c, model_seconds: c.seconds.model, tests_seconds: c.seconds.tests })));
    for (const c of data.campaigns) {
      heading(`${c.campaign}: answers by outcome`);
      const outcomes = Object.entries(c.outcomes);
      chart(`outcomes-${c.campaign}`, [{
        type: "bar", x: outcomes.map(([o]) => label(o)), y: outcomes.map(([, n]) => n), marker: { color: color("pass") },
      }], { alt: "Answers by outcome", yaxis: { title: { text: "answers" } }, xaxis: { type: "category" } }, 260);
      table(`feedback-${c.campaign}`, [
        ["feedback", id], ["answers", number], ["answered_again", number], ["got_further", number],
      ], Object.entries(c.feedback).map(([feedback, counts]) => ({ feedback, ...counts })));
    }
    heading("Dialogs");
    const rows = data.dialogs.map((dialog, index) => ({ ...dialog, index }));
    table("dialogs", [
      ["overload", id], ["campaign", id], ["stage", judged], ["reason", wide], ["calls", number], ["tokens", number],
    ], rows, { open: (row, opener) => openDialog(data.dialogs[row.index], opener) });
  }

  function openDialog(dialog, opener) {
    openDrawer(`${dialog.overload}, ${dialog.campaign}`, [facts([["stage", status(dialog.stage)], ["reason", dialog.reason]]), ...dialog.turns.map(dialogTurn)], opener);
  }

  // -- search for speed ----------------------------------------------------------------------------------------------

  // The candidates of a search, level by level: a circle for each, a line to each parent.
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
      const words = [`${node.number}, ${node.move}`, right ? `${node.mean.toFixed(2)} x, ${(100 * node.reward).toFixed(0)} % of limit` : node.state];
      words.forEach((text, i) => {
        picture.append(drawn("text", { x, y: y + 30 + 14 * i, "text-anchor": "middle", fill: color("front"), "font-size": 11 }, text));
      });
    }
    return element("div", { class: "scroll tree" }, picture);
  }

  function tuning() {
    data.searches.forEach((search, i) => {
      heading(`${search.overload}, ${search.run}`);
      note(`${search.device}; ${search.skills ? "with" : "without"} skills. A number is the speedup of a candidate over the kernel `
        + "in force; a broken line leads to a second parent; the limit is the best that the GPU could do.");
      if (search.open.length) note(`Candidate ${search.open.join(", ")} has begun and not ended.`);
      if (search.nodes.length > 1) put(tree(search));
      table(`candidates-${i}`, [
        ["candidate", { ...number, ...id }], ["state", judged], ["reason", wide], ["move"], ["parents", joined], ["speedup", number],
        ["noise_percent", number], ["limit_percent", number], ["calls", number], ["learned", wide],
      ], search.nodes.map((n) => ({
        ...n, candidate: n.number, speedup: n.mean || null, noise_percent: +(100 * n.noise).toFixed(2), limit_percent: +(100 * n.reward).toFixed(1),
      })));
    });
  }

  // -- performance and traces ---------------------------------------------------------------------------------------

  function performance() {
    heading("Speed against ATen");
    note("Above 1 the library is faster. The mark is the limit: the speed if bytes and operations took no longer than the GPU's "
      + "best, at most 5. The chart shows the 60 slowest calls that are not launch-bound.");
    const rows = data.performance.map((r) => ({
      ...r, speedup: +(r.aten_us / r.library_us).toFixed(3), limit: +(r.aten_us / r.limit_us).toFixed(3),
    })).sort((a, b) => a.speedup - b.speedup);
    const shown = rows.filter((r) => !r.launch_bound).slice(0, 60);
    const names = shown.map((r) => label(`${r.overload} ${r.dtype} ${r.shapes}`.slice(0, 60)));
    if (shown.length > 1) chart("speed", [
      { type: "bar", orientation: "h", name: "against ATen", y: names, x: shown.map((r) => r.speedup), marker: { color: color("pass") } },
      { type: "scatter", mode: "markers", name: "at the limit", y: names, x: shown.map((r) => Math.min(r.limit, 5)), marker: { color: color("fail"), symbol: "line-ns-open", size: 13, line: { width: 3 } } },
    ], {
      alt: "The slowest calls against ATen, with what the limit would allow", showlegend: true,
      xaxis: { title: { text: "times ATen's speed" } }, yaxis: { type: "category", autorange: "reversed", tickfont: { size: 11 } },
      shapes: [{ type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: color("faint"), dash: "dot" } }],
    }, Math.max(200, 90 + 18 * shown.length));
    table("figures", [
      ["overload", id], ["dtype", id], ["shapes", id], ["aten_us", number], ["library_us", number], ["limit_us", number], ["speedup", number],
      ["environment"],
    ], rows);
  }

  function traces() {
    for (const [i, trace] of data.traces.entries()) {
      heading(`${trace.name}`);
      note(`${trace.model}${trace.device && ` on ${trace.device}`}: ${trace.calls} calls, ${trace.stored} of them stored. `
        + "The charts show the stored calls; their times are estimates for a nominal chip.");
      if (trace.timeline.length > 1) {
        const deepest = Math.max(...trace.timeline.map(([, depth]) => depth));
        const of = (around) => trace.timeline.filter(([, , , , kind]) => (kind === "around") === around);
        const bars = (slices, name) => ({
          type: "bar", orientation: "h", name, base: slices.map((s) => s[2]), x: slices.map((s) => s[3]),
          y: slices.map((s) => s[1]), text: slices.map((s) => label(s[0])), textposition: "inside", insidetextanchor: "start",
          hovertemplate: "%{text}: %{x:.1f} us<extra></extra>", width: 0.95, marker: { color: color(name), line: { width: 0 } },
        });
        chart(`timeline-${i}`, [bars(of(true), "none"), bars(of(false), "pass")], {
          alt: "Stored calls by step, phase and module", barmode: "overlay", dragmode: "pan",
          xaxis: { title: { text: "estimated time (us)" } },
          yaxis: { autorange: "reversed", showticklabels: false }, uniformtext: { minsize: 8, mode: "hide" },
        }, 120 + 26 * (deepest + 1));
      } else if (!trace.timeline.length) note("There are too many stored calls to draw a timeline.");
      chart(`memory-${i}`, trace.phases.map((phase, p) => ({
        type: "bar", orientation: "h", name: label(phase || "no phase"), y: trace.memory.map((m) => label(m.module)),
        x: trace.memory.map((m) => m.bytes[p]), marker: { color: series(p) },
      })), {
        alt: "Bytes of inputs by module and phase", barmode: "stack", showlegend: true,
        xaxis: { title: { text: "bytes of inputs" } }, yaxis: { type: "category", autorange: "reversed" },
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
  ].filter(([, , , isShown]) => isShown);
  const tabs = document.getElementById("tabs");
  let current = views[0][0];

  function select(name) {
    current = name;
    clear();
    main.dataset.view = name;
    for (const tab of tabs.children) {
      const chosen = tab.dataset.view === name;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
    views.find(([view]) => view === name)[2]();
    index();
    history.replaceState(null, "", `#${name}`);
  }

  // An index of the view's headings, if there are more than two.
  function index() {
    const heads = [...main.querySelectorAll("h2")];
    if (heads.length < 3) return;
    const list = element("ul", {}, ...heads.map((head) => element("li", {}, element("a", { href: `#${head.id}` }, head.textContent))));
    main.prepend(element("nav", { class: "index", "aria-label": "On this page" }, list));
  }

  // Returns the text of a part of an address; "" if its escapes are malformed.
  function unescaped(part) {
    try {
      return decodeURIComponent(part);
    } catch {
      return "";
    }
  }

  // Shows the view and the heading that an address names, such as #overloads/by-dtype.
  function follow() {
    const name = unescaped(location.hash.slice(1));
    const [view] = name.split("/");
    if (!views.some(([known]) => known === view)) return false;
    if (view !== current || !main.children.length) select(view);
    if (name !== view) {
      history.replaceState(null, "", `#${name}`);
      document.getElementById(name)?.scrollIntoView();
    }
    return true;
  }
  window.addEventListener("hashchange", follow);

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

  themeButton(() => select(current));
  for (const line of document.querySelectorAll("#headlines .headline")) line.parentNode.append(" ", copyButton(line.textContent));
  matchMedia("(max-width: 640px)").onchange = () => select(current);
  if (!follow()) select(current);
})();
