"""`enable report`: what it collects, and its page in a real browser."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from capture import Recorder
from enable.cli import run
from enable.report.changes import changes
from enable.report.dialogs import difference
from enable.report.failures import marked_lines, picture
from enable.report.page import embedded, html
from traces.values import pack
from verify import platforms
from verify.cases.case import case_of_values, reference
from verify.judging.verdicts import Identity, VerdictStore
from verify.outcome import Outcome, Verdict

KERNELS = Path(__file__).parents[2] / "generate" / "kernels"
HOSTILE = "<img src=x onerror=hostile=1>"
CHROMIUM = shutil.which("chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
FIGURE = {
    "number": 0,
    "dtype": "float32",
    "place": "a GPU",
    "failed": "",
    "row": {
        "overload": "aten::exp",
        "shapes": "[4096, 4096]",
        "aten": 60.0,
        "library": 80.0,
        "gems": None,
        "host": 9.0,
        "least": 45.0,
        "calls": 1,
    },
}
DIALOG = {
    "campaign": "one",
    "overload": "aten::exp",
    "stage": "PASSED",
    "calls": 2,
    "tokens": 900,
    "detail": "",
    "turns": [
        {"role": "user", "text": f"Write exp. {HOSTILE}"},
        {"role": "answer 1", "text": "a\nb", "diff": "", "then": ["lint refused it"]},
        {"role": "answer 2", "text": "a\nc", "diff": difference("a\nb", "a\nc"), "then": ["it passed"]},
    ],
}
CAMPAIGN = {
    "campaign": "one",
    "model": "replay",
    "total": 2,
    "passed": 1,
    "percent": 50.0,
    "calls": 3,
    "tokens": 1200,
    "seconds": {"model": 1.0, "tests": 2.0},
    "within": [0.0, 50.0],
    "outcomes": {"LINT": 1, "PASS": 1},
    "feedback": {"LINT": {"answers": 1, "answered_again": 1, "got_further": 1}},
}

NODE = {"outcome": "PASSED", "detail": "", "learned": "", "calls": 1, "reward": 0.5, "mean": 1.0, "noise": 0.01}
SEARCH = {
    "overload": "aten::exp",
    "run": "run-001",
    "device": "a GPU",
    "skills": True,
    "open": [3],
    "nodes": [
        {**NODE, "number": 0, "move": "in force", "parents": []},
        {**NODE, "number": 1, "move": "inherit", "parents": [0], "mean": 1.25, "learned": f"Wide loads. {HOSTILE}"},
        {**NODE, "number": 2, "move": "combine", "parents": [1, 0], "outcome": "WRONG", "mean": 0.0, "reward": 0.0},
    ],
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a trace of OpInfo and one of a net, a library whose exp is wrong, and a file of figures."""
    home = tmp_path_factory.mktemp("report")
    group = home / "library" / "pointwise"
    group.mkdir(parents=True)
    for name in ("mul", "neg", "reciprocal"):
        shutil.copy(KERNELS / "pointwise" / f"{name}.py", group)
    text = (KERNELS / "pointwise" / "exp.py").read_text()
    assert "tl.exp(" in text
    wrong = text.replace("tl.exp(", "1.01 * tl.exp(") + f"# {HOSTILE}</script><script>window.hostile = 1</script>\n"
    (group / f"{HOSTILE}.py").write_text(wrong)
    model = torch.nn.Module()
    model.add_module(HOSTILE, inner := torch.nn.Sequential(torch.nn.ReLU()))
    (home / "w" / "traces").mkdir(parents=True)
    with Recorder(home / "w" / "traces" / "net.trace", model=model) as recorder:
        inner(torch.linspace(-1, 1, 600).view(20, 30).exp().neg())
        recorder.step()
    chosen = [word for name in ("exp", "reciprocal") for word in ("--op", name)]
    assert run(["--workspace", str(home / "w"), "capture", "opinfo", *chosen, "--dtype", "float32"]) == 0
    failed = {**FIGURE, "failed": "out of memory"}
    (home / "figures.jsonl").write_text(f"{json.dumps(FIGURE)}\n{json.dumps(failed)}\n")
    return home


def report(home, *more):
    return ["--workspace", str(home / "w"), "report", "--library", str(home / "library"), *map(str, more)]


@pytest.fixture(scope="module")
def page(workspace):
    """The page of it, with what changed since a report in which nothing failed, and a campaign beside."""
    assert run(report(workspace, "--benchmark", workspace / "figures.jsonl", "--out", workspace / "page.html")) == 0
    return workspace / "page.html"


@pytest.fixture(scope="module")
def data(page):
    inside = page.read_text().split('<script type="application/json" id="data">')[1]
    return json.loads(inside.split("</script>")[0])


def test_what_it_holds(data):
    assert data["platforms"] == ["sim"] and {m["name"] for m in data["models"]} == {"net", "opinfo"}
    rows = {row["overload"]: row for row in data["overloads"]}
    exp, neg, relu = rows["aten::exp"], rows["aten::neg"], rows["aten::relu"]
    assert (exp["state"], exp["layer"], exp["speed"]) == ("WRONG", "compare", 0.75) and HOSTILE in exp["kernel"]
    assert (neg["state"], neg["models"]["net"], neg["dtypes"]) == ("PASS", "PASS", {"float32": "PASS"})
    assert neg["models"]["opinfo"] in ("PASS", "not run"), "an operator is left at its first failing case"
    assert (relu["state"], relu["kernel"]) == ("no kernel", None)
    assert rows["aten::reciprocal"]["cases"] > 1 and rows["aten::reciprocal"]["independent"] > 1
    missing = [row["overload"] for row in data["missing"]]
    assert missing[0] == "aten::exp" and "aten::relu" in missing and "aten::neg" not in missing
    assert data["missing"][0]["lacking"] and "--case" in data["missing"][0]["next"]
    (one,) = data["opinfo"]
    assert one["operators"]["covered"] == 1 and [row["name"] for row in one["rows"]] == ["exp"]
    assert {c["category"]: c["published"] for c in one["categories"]}["Elementwise"] == 85.9


def test_a_failing_case(data):
    failure = next(f for f in data["failures"] if f["trace"] == "net")
    assert (failure["overload"], failure["outcome"], failure["layer"]) == ("aten::exp", "WRONG", "compare")
    assert "shape [20, 30] float32" in failure["report"] and "arguments of this case" in failure["report"]
    assert failure["picture"]["shape"] == [20, 30] and len(failure["picture"]["rows"]) == 20
    assert all(-6 < v <= 0 for row in failure["picture"]["rows"] for v in row)
    assert HOSTILE in data["kernels"][failure["kernel"]]
    assert f"--case {failure['case']}" in failure["again"]


def test_a_trace_is_told(data):
    net = next(t for t in data["traces"] if t["name"] == "net")
    names = [(name, depth) for name, depth, *_ in net["timeline"]]
    assert names[0] == ("step 0", 0) and (HOSTILE, 2) in names and ("aten::exp", 2) in names
    assert net["dtypes"]["float32"] >= 3 and net["sizes"] == {"9": net["dtypes"]["float32"]}
    assert sum(map(sum, (m["bytes"] for m in net["memory"]))) > 0


def test_what_changed(data, workspace, capsys):
    before = json.loads(json.dumps(data))
    before["overloads"] = [
        {**row, "state": "PASS"} if row["overload"] == "aten::exp" else row
        for row in before["overloads"]
        if row["overload"] != "aten::relu"
    ]
    found = changes(before, data)
    told = {(row["overload"], row["before"], row["now"]) for row in found["rows"]}
    assert told == {("aten::exp", "PASS", "WRONG"), ("aten::relu", "-", "no kernel")}
    assert (found["gained"], found["lost"]) == (0, 1)
    for kept in ("page.html", "kept.json"):
        (workspace / "kept.json").write_text(json.dumps(data))
        capsys.readouterr()
        assert run(report(workspace, "net", "--since", workspace / kept, "--json")) == 0
        assert json.loads(capsys.readouterr().out)["changes"]["since"] == data["made"]


def test_two_platforms(workspace, capsys):
    (workspace / "chip.yaml").write_text("base: sim\nexecute_seconds: 90\n")
    capsys.readouterr()
    words = ["net", "--platform", "sim", "--platform", workspace / "chip.yaml", "--json"]
    assert run(report(workspace, *words)) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(set(found["platforms"])) == 2 and [m["platform"] for m in found["models"]] == found["platforms"]
    states = {(row["overload"], row["platform"]): row["state"] for row in found["overloads"]}
    assert {states["aten::exp", platform] for platform in found["platforms"]} == {"WRONG"}


@pytest.mark.parametrize(
    "words, said",
    [
        (["nothere"], "nothere"),
        (["--campaign", "nothere"], "no campaign 'nothere'"),
        (["--platform", "nothere"], "nothere"),
        (["--since", "figures.jsonl"], "is no report"),
        (["--since", "nothere.html"], "cannot be read"),
        (["--benchmark", "library/pointwise/neg.py"], "line 1 is none of benchmarks.operators"),
        (["--benchmark", "still.jsonl"], "line 1 is none of benchmarks.operators"),
        (["--out", "library"], "is a directory"),
        (["--out", "nothere/page.html"], "no such directory"),
    ],
)
def test_bad_input(workspace, monkeypatch, capsys, words, said):
    monkeypatch.chdir(workspace)
    still = {**FIGURE, "row": {**FIGURE["row"], "library": 0.0}}
    (workspace / "still.jsonl").write_text(json.dumps(still))
    before = sorted(workspace.rglob("*.html"))
    assert run(report(workspace, *words)) == 2
    assert said in capsys.readouterr().err and sorted(workspace.rglob("*.html")) == before


def test_a_workspace_with_nothing(tmp_path, capsys):
    assert run(["--workspace", str(tmp_path / "w"), "report"]) == 2
    assert "enable --workspace" in (said := capsys.readouterr().err) and "capture nanogpt" in said


def test_a_report_of_another_version(data, tmp_path, workspace, capsys):
    (tmp_path / "old.json").write_text(json.dumps({**data, "version": 9}))
    assert run(report(workspace, "--since", tmp_path / "old.json")) == 2
    assert "of format enable-report 9" in capsys.readouterr().err


def test_the_largest_error_of_a_kernel(tmp_path):
    store, sim = VerdictStore(tmp_path / "verdicts.sqlite"), platforms.load("sim")
    details = [f"largest error {ratio} of ATen's own" for ratio in ("1.5", "0.2", "nan", "inf")] + [""]
    for case, detail in enumerate(details):
        store.put(Identity(("k",), "aten::mm", str(case), sim), Verdict(str(case), Outcome.PASS, detail), 0.0)
    assert store.accuracies(sim) == {(("k",), "aten::mm"): 1.5}
    store.close()


def test_lines_that_a_report_names():
    text = "a\nb\nc\n"
    assert marked_lines("  line 2, in wrapper: b\n  line 9, in f\n  line 1 of blocks/x.py", text) == [2]


def test_pictures():
    x = torch.linspace(0.5, 2.0, 6000).view(10, 600)
    expected = reference(case_of_values("aten::neg", self=x), (0, 0))
    right = pack({"self": x, "return": -x})
    assert picture(expected, right) is None
    bad = -x.clone()
    bad[3, 599] = float("nan")
    found = picture(expected, pack({"self": x, "return": bad}))
    assert found["shape"] == [10, 600] and (len(found["rows"]), len(found["rows"][0])) == (10, 96)
    drawn = [(i, j) for i, row in enumerate(found["rows"]) for j, v in enumerate(row) if v is not None]
    assert drawn == [(3, 95)]


def test_no_markup_in_the_data():
    text = embedded({"a": "</script><!-- & <script>"})
    assert not set("<>&") & set(text) and json.loads(text) == {"a": "</script><!-- & <script>"}


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def whole(page, data):
    """The page with a campaign, a dialog and changes, too."""
    more = {
        "campaigns": [CAMPAIGN],
        "dialogs": [DIALOG],
        "searches": [SEARCH],
        "changes": changes({**data, "overloads": []}, data),
    }
    path = page.with_name("whole.html")
    path.write_text(html({**data, **more}))
    return path


@pytest.fixture
def opened(browser, whole):
    """A function that opens the page; at the end there were no errors, and nothing was asked of any network."""
    said, asked, contexts = [], [], []

    def open_(**options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "offline": True, **options})
        contexts.append(context)
        shown = context.new_page()
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.on("request", lambda request: asked.append(request.url))
        shown.goto(whole.as_uri())
        return shown

    yield open_
    for context in contexts:
        context.close()
    assert said == [] and {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}, (said, asked)


def cells(shown, table, field):
    return shown.locator(f"#{table} .tabulator-row .tabulator-cell[tabulator-field={field}]").all_inner_texts()


def test_every_view_opens(opened):
    shown = opened()
    for tab in shown.locator("#tabs button").all():
        tab.click()
        assert tab.get_attribute("aria-selected") == "true" and shown.locator("main h2").count() > 0
    assert shown.locator("#tabs button").count() == 8


def test_the_tree_of_a_search_is_drawn(opened):
    shown = opened()
    shown.get_by_role("tab", name="Search for speed").click()
    assert (shown.locator(".tree circle").count(), shown.locator(".tree line").count()) == (3, 3)
    words = shown.locator(".tree text").all_text_contents()
    assert "1, inherit" in words and "1.25 x, 50 % of limit" in words and "WRONG" in words
    assert HOSTILE in shown.locator("main table").inner_text()
    assert "candidate 3 has begun and not ended" in shown.locator("main").inner_text()


def test_what_changed_is_told(opened, data):
    """The page is of changes since a report without overloads, whose models had the same shares."""
    shown = opened()
    table = shown.locator("main table.plain").first.locator("tr")
    assert table.nth(0).locator("th").all_inner_texts()[3:5] == ["share before", "share"]
    for i, model in enumerate(data["models"], start=1):
        cells_ = table.nth(i).locator("td").all_inner_texts()
        assert cells_[3] == cells_[4] == f"{model['overloads']['percent']:g} %"
    assert "overloads more pass" in shown.locator("main").inner_text()
    assert set(cells(shown, "changes", "before")) == {"-"} and "WRONG" in cells(shown, "changes", "now")


def test_sorting_and_filtering(opened):
    shown = opened()
    shown.get_by_role("tab", name="Overloads").click()
    names = cells(shown, "overloads", "overload")
    assert names == sorted(names) and len(names) > 3
    head = shown.locator("#overloads .tabulator-col[tabulator-field=overload] .tabulator-col-title")
    head.click()
    head.click()
    assert cells(shown, "overloads", "overload") == sorted(names, reverse=True)
    shown.locator("#overloads .tabulator-col[tabulator-field=state] input").press_sequentially("wrong")
    shown.locator("#overloads .tabulator-row", has_text="aten::neg").wait_for(state="detached")
    assert cells(shown, "overloads", "overload") == ["aten::exp"]


def test_a_failing_case_in_three_clicks(opened):
    shown = opened()
    shown.get_by_role("tab", name="Failing cases").click()
    shown.locator("#failing .tabulator-row").first.click()
    title = shown.locator("#failure-title")
    assert title.inner_text() == "aten::exp: WRONG" and title.evaluate("e => e === document.activeElement")
    text = shown.locator("#failure").inner_text()
    assert "--case" in text and "arguments of this case" in text and "1.01 * tl.exp(" in text
    assert shown.locator("#picture .heatmaplayer image").count() == 1


def test_from_an_overload_to_its_failing_case(opened):
    shown = opened()
    shown.get_by_role("tab", name="Overloads").click()
    shown.locator("#overloads .tabulator-row", has_text="aten::exp").first.click()
    shown.get_by_role("button", name="Its failing case in net").click()
    assert shown.locator("#failure-title").inner_text() == "aten::exp: WRONG"


def open_dialog(shown):
    """Click the first dialog until it opens: while charts are drawn above it a click may miss it."""
    shown.get_by_role("tab", name="Campaigns").click()
    for _ in range(10):
        shown.locator("#dialogs .tabulator-row").first.click()
        if shown.locator("#dialog-title").count():
            return
        shown.wait_for_timeout(500)
    raise AssertionError("no dialog opens")


def test_hostile_names_are_shown(opened):
    shown = opened()
    for tab in shown.locator("#tabs button").all():
        tab.click()
        shown.locator("main").hover()
    shown.get_by_role("tab", name="Failing cases").click()
    shown.locator("#failing .tabulator-row").first.click()
    assert HOSTILE in shown.locator("#failure").inner_text()
    open_dialog(shown)
    assert HOSTILE in shown.locator("#dialog").inner_text()
    assert shown.evaluate("window.hostile") is None and shown.locator("img").count() == 0


def test_the_policy_holds(browser, whole):
    """A script that is none of the page's does not run, whoever put it there."""
    context = browser.new_context(offline=True)
    shown, said = context.new_page(), []
    shown.on("console", lambda message: said.append(message.text))
    shown.goto(whole.as_uri())
    shown.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.hostile = 1';
        document.body.append(script);
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hostile = 1">');
    }""")
    shown.wait_for_timeout(200)
    assert shown.evaluate("window.hostile") is None
    assert any("Content Security Policy" in text for text in said)
    context.close()


def test_an_answer_as_a_difference(opened):
    shown = opened()
    open_dialog(shown)
    assert shown.locator("#dialog .added").all_inner_texts() == ["+c"]
    assert shown.locator("#dialog .removed").all_inner_texts() == ["-b"]


def background(shown):
    return shown.evaluate("getComputedStyle(document.body).backgroundColor")


def test_both_themes(opened):
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    assert background(light) == "rgb(255, 255, 255)" != background(dark)
    light.locator("#theme").click()
    assert background(light) == background(dark) and light.locator("#theme").inner_text() == "Light"
    for shown in (light, dark):
        assert contrast(shown, "body") > 7 and contrast(shown, "[role=tab][aria-selected=true]") > 4.5


def contrast(shown, selector):
    """Of a text with its background (WCAG 2.2, contrast ratio)."""
    colors = shown.evaluate(
        "s => { const c = getComputedStyle(document.querySelector(s)); return [c.color, c.backgroundColor] }", selector
    )

    def luminance(color):
        parts = [int(p) / 255 for p in color[color.index("(") + 1 : -1].split(",")[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    bright, dim = sorted(map(luminance, colors), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_by_keyboard(opened):
    shown = opened()
    shown.locator("#tabs [aria-selected=true]").focus()
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("document.activeElement.dataset.view") == "overloads"
    shown.keyboard.press("ArrowRight")
    shown.locator("#failing .tabulator-row").first.focus()
    shown.keyboard.press("Enter")
    assert shown.locator("#failure-title").inner_text() == "aten::exp: WRONG"


def test_on_a_phone(opened):
    shown = opened(viewport={"width": 390, "height": 800})
    for tab in shown.locator("#tabs button").all():
        tab.click()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390, tab.inner_text()
