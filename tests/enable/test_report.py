"""`enable report`: what it collects, and its page in a real browser."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
import torch
from browser import clean_pages

from capture import Recorder
from enable.cli import run
from enable.cover.coverage import percent
from enable.report.changes import changes
from enable.report.dialogs import difference
from enable.report.failures import marked_lines, picture
from enable.report.headline import headlines, texts_of
from enable.report.live import LiveReport
from enable.report.page import content, embedded, html
from enable.report.reasons import add_reasons, category, reason
from enable.workspace import Workspace
from traces.values import pack
from verify import platforms
from verify.cases.case import case_of_values, reference
from verify.judging.verdicts import Identity, VerdictStore
from verify.outcome import Outcome, Verdict

KERNELS = Path(__file__).parents[2] / "generate" / "kernels"
HOSTILE = "<img src=x onerror=hostile=1>"
FORMULA = "=HYPERLINK(1)"
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
        {"role": "prompt", "text": f"Write exp. {HOSTILE}"},
        {"role": "answer 1", "text": "a\nb", "diff": "", "then": ["lint refused it"]},
        {"role": "answer 2", "text": "a\nc", "diff": difference("a\nb", "a\nc"), "then": ["it passed"]},
    ],
}
FAILED_DIALOG = {**DIALOG, "overload": FORMULA, "stage": "REFUSED", "detail": "@SUM(1)", "tokens": -5}
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

NODE = {"state": "PASSED", "detail": "", "learned": "", "calls": 1, "reward": 0.5, "mean": 1.0, "noise": 0.01}
SEARCH = {
    "overload": "aten::exp",
    "run": "run-001",
    "device": "a GPU",
    "skills": True,
    "open": [3],
    "nodes": [
        {**NODE, "number": 0, "move": "in force", "parents": []},
        {**NODE, "number": 1, "move": "inherit", "parents": [0], "mean": 1.25, "learned": f"Wide loads. {HOSTILE}"},
        {**NODE, "number": 2, "move": "combine", "parents": [1, 0], "state": "WRONG", "detail": "NaN", "mean": 0.0},
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
    assert (exp["state"], exp["layer"], exp["speedup"]) == ("WRONG", "compare", 0.75) and HOSTILE in exp["kernel"]
    assert (neg["state"], neg["models"]["net"], neg["dtypes"]) == ("PASS", "PASS", {"float32": "PASS"})
    assert neg["models"]["opinfo"] in ("PASS", "not run"), "an operator is left at its first failing case"
    assert (relu["state"], relu["kernel"]) == ("no kernel", None)
    assert rows["aten::reciprocal"]["cases"] > 1 and rows["aten::reciprocal"]["independent"] > 1
    missing = [row["overload"] for row in data["missing"]]
    assert missing[0] == "aten::exp" and "aten::relu" in missing and "aten::neg" not in missing
    assert data["missing"][0]["models"] and "--case" in data["missing"][0]["command"]
    (one,) = data["opinfo"]
    assert one["operators"]["covered"] == 1 and [row["operator"] for row in one["rows"]] == ["exp"]
    assert {c["category"]: c["published_percent"] for c in one["categories"]}["Elementwise"] == 85.9


def test_a_failing_case(data):
    failure = next(f for f in data["failures"] if f["trace"] == "net")
    assert (failure["overload"], failure["state"], failure["layer"]) == ("aten::exp", "WRONG", "compare")
    assert "shape [20, 30] float32" in failure["report"] and "arguments of this case" in failure["report"]
    assert failure["picture"]["shape"] == [20, 30] and len(failure["picture"]["rows"]) == 20
    assert all(-6 < v <= 0 for row in failure["picture"]["rows"] for v in row)
    assert HOSTILE in data["kernels"][failure["kernel"]]
    assert f"--case {failure['case']}" in failure["command"]


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
    told = {(row["overload"], row["earlier_state"], row["state"]) for row in found["rows"]}
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
        (["--since", "nothere.html"], "--since nothere.html: cannot be read (No such file or directory); name a page"),
        (["--benchmark", "library/pointwise/neg.py"], "line 1 is none of benchmarks.operators"),
        (["--benchmark", "library"], "library: cannot be read (Is a directory); write one"),
        (["--benchmark", "latin"], "latin: cannot be read (not a text in UTF-8); write one"),
        (["--since", "latin"], "--since latin: cannot be read (not a text in UTF-8); name a page"),
        (["--benchmark", "still.jsonl"], "line 1 is none of benchmarks.operators"),
        (["--out", "library"], "is a directory"),
        (["--out", "nothere/page.html"], "no such directory"),
    ],
)
def test_bad_input(workspace, monkeypatch, capsys, words, said):
    monkeypatch.chdir(workspace)
    still = {**FIGURE, "row": {**FIGURE["row"], "library": 0.0}}
    (workspace / "still.jsonl").write_text(json.dumps(still))
    (workspace / "latin").write_bytes(b"\xff")
    before = sorted(workspace.rglob("*.html"))
    assert run(report(workspace, *words)) == 2
    assert said in capsys.readouterr().err and sorted(workspace.rglob("*.html")) == before


def test_a_workspace_with_nothing(tmp_path, capsys):
    assert run(["--workspace", str(tmp_path / "w"), "report"]) == 2
    assert "enable --workspace" in (said := capsys.readouterr().err) and "capture nanogpt" in said


def test_a_file_in_the_place_of_a_trace_is_not_one(tmp_path, capsys):
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "stray.trace").write_text("text")
    assert run(["--workspace", str(tmp_path), "report", "stray"]) == 2
    assert f"no trace 'stray' ({tmp_path}/traces holds none yet)" in capsys.readouterr().err


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


def test_operators_for_cpus_alone_are_counted_nowhere(workspace, tmp_path, capsys):
    (tmp_path / "w" / "traces").mkdir(parents=True)
    with Recorder(tmp_path / "w" / "traces" / "attention.trace") as recorder:
        x = torch.linspace(-1, 1, 600).view(1, 2, 20, 15)
        torch.nn.functional.scaled_dot_product_attention(x, x, x).relu()
        recorder.step()
    capsys.readouterr()
    library = workspace / "library"
    assert run(["--workspace", str(tmp_path / "w"), "report", "--library", str(library), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (model,), (line,) = report["models"], report["headlines"]
    assert not [row for row in report["overloads"] if "for_cpu" in row["overload"]]
    assert line["total"] == model["overloads"]["compute"] == len(report["overloads"]) == 2
    live = LiveReport(Workspace(tmp_path / "w"), library, (), (), ("sim",)).state()
    assert live["models"][0]["overloads"] == model["overloads"] and live["models"][0]["calls"] == model["calls"]


def test_help_names_no_types_of_python(capsys):
    assert run(["report", "--help"]) == 0
    text = capsys.readouterr().out
    assert "TRACE" in text and "--port N" in text and "--platform NAME" in text
    assert not [word for word in ("str>", "int>", "list[") if word in text]


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


# -- headlines and reasons -------------------------------------------------------------------------------------------


def result(states, time=79.2, shares=None, made="2026-12-01 10:00", name="nanogpt"):
    """A report's data with one model on one platform."""
    missing = [overload for overload, state in states.items() if state != "PASS"]
    model = {"name": name, "title": "nanoGPT", "platform": "orion", "time_percent": time}
    model["missing_percent"] = shares or dict.fromkeys(missing, 9.7)
    rows = [{"overload": o, "platform": "orion", "models": {name: state}} for o, state in states.items()]
    return {"made": made, "models": [model], "overloads": rows, "opinfo": []}


def states(passing, missing=()):
    return {**{f"aten::op{i}": "PASS" for i in range(passing)}, **dict.fromkeys(missing, "no kernel")}


ADDS = ("aten::add.Tensor", "aten::add.Scalar")
EIGHT = ("aten::add_.Tensor", *(f"aten::missing{i}" for i in range(7)))


@pytest.mark.parametrize(
    "data, text",
    [
        (
            result(states(30, EIGHT)),
            "nanoGPT on orion: 30 of 38 operators, 79 % of time; 8 missing, led by add_ (9.7 %)",
        ),
        (result(states(38), 100.0), "nanoGPT on orion: all 38 operators, 100 % of time; nothing is missing"),
        (result(states(1), 100.0), "nanoGPT on orion: its only operator, 100 % of time; nothing is missing"),
        (result({}), "nanoGPT on orion: no operator needs a kernel"),
        (
            result(states(999, ["aten::mm"]), 99.9, {"aten::mm": 0.0}),
            "nanoGPT on orion: 999 of 1000 operators, over 99 % of time; 1 missing, led by mm (under 0.1 %)",
        ),
        (
            result(states(1, ["aten::mm"]), 0.3, {"aten::mm": 100.0}),
            "nanoGPT on orion: 1 of 2 operators, under 1 % of time; 1 missing, led by mm (99.9 %)",
        ),
        (
            result(
                states(1, ["aten::add.Tensor", "aten::add.Scalar"]),
                None,
                {"aten::add.Tensor": 5.0, "aten::add.Scalar": 1.0},
            ),
            "nanoGPT on orion: 1 of 3 operators; 2 missing, led by add.Tensor (5.0 %)",
        ),
        (
            result({**states(1), "aten::mm": "WRONG", "aten::mv": "SKIPPED"}),
            "nanoGPT on orion: 1 of 3 operators, 79 % of time; 2 missing, led by mm (9.7 %)",
        ),
    ],
)
def test_a_headline(data, text):
    (line,) = headlines(data, None)
    assert (line["text"], line["trend"]) == (text, "")
    assert line["missing"] == line["total"] - line["covered"]


@pytest.mark.parametrize(
    "before, trend",
    [
        (states(27, EIGHT), "+3 operators since 2026-11-28"),
        (states(29, EIGHT), "+1 operator since 2026-11-28"),
        (states(30, EIGHT), "no change since 2026-11-28"),
        ({**states(29, EIGHT), "aten::gone": "PASS"}, "+1 and -1 operator since 2026-11-28"),
        (states(31, EIGHT), "-1 operator since 2026-11-28"),
    ],
)
def test_a_trend(before, trend):
    now = result(states(30, EIGHT))
    (line,) = lines = headlines(now, result(before, made="2026-11-28 09:00"))
    assert line["trend"] == trend and texts_of(lines) == [f"{line['text']} ({trend})"]
    (line,) = headlines(now, result(before, made="2026-11-28 09:00", name="other"))
    assert line["trend"] == "new since 2026-11-28"


def test_a_trend_of_opinfo():
    def opinfo(covered, total, failing):
        rows = [{"operator": name, "samples": samples} for name, samples in failing.items()]
        one = {"trace": "nanogpt", "platform": "orion", "operators": {"covered": covered, "total": total}, "rows": rows}
        return {**result({}, made="2026-11-28 09:00"), "opinfo": [one]}

    now = opinfo(3, 5, {"exp": 1, "mm": 7})
    (line,) = headlines(now, opinfo(3, 5, {"exp": 1, "mv": 2}))
    assert line["text"] == "nanoGPT on orion: 3 of 5 OpInfo operators; 2 missing, led by mm (7 samples)"
    assert line["trend"] == "+1 and -1 operator since 2026-11-28", "the counts are equal, the operators are not"
    assert headlines(now, opinfo(1, 2, {"add": 1}))[0]["trend"] == "+2 operators since 2026-11-28"
    (line,) = headlines(opinfo(5, 5, {}), None)
    assert line["text"] == "nanoGPT on orion: all 5 OpInfo operators; nothing is missing"


def test_headlines_of_the_report(data, workspace, capsys):
    texts = [line["text"] for line in data["headlines"]]
    assert texts[0] == "net on sim: 1 of 4 operators, 25 % of time; 3 missing, led by exp (25.0 %)"
    assert texts[1] == "opinfo on sim: 1 of 2 OpInfo operators; 1 missing, led by exp (3 samples)"
    capsys.readouterr()
    again = report(workspace, "net", "--since", workspace / "page.html", "--out", workspace / "again.html")
    assert run(again) == 0
    since = data["made"][:10]
    assert capsys.readouterr().out.splitlines()[0] == f"{texts[0]} (no change since {since})"
    assert run([*again, "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["headlines"]
    assert line["trend"] == f"no change since {since}" and (line["covered"], line["missing"]) == (1, 3)


def test_only_everything_is_100_percent():
    assert (percent(10_000, 9_999), percent(3, 3), percent(3, 0), percent(0, 0)) == (99.9, 100.0, 0.0, None)


def test_reasons(data):
    reasons = {row["overload"]: row["reason"] for row in data["overloads"]}
    assert "600 of 600 elements wrong" in reasons["aten::exp"] and "no kernel" in reasons["aten::relu"]
    assert "independent case" in reasons["aten::neg"]
    assert reason("SKIPPED", "not tried; try it: enable verify x") == "not tried"
    assert reason("WRONG", "a\n b") == "a b" and len(reason("WRONG", "a" * 900)) == 300
    assert reason("PASS", "", 5) == "" and "1 independent case" in reason("PASS", "", 1)
    assert category("aten::sum.dim_IntList") == "reduction" and category("mine::op") == "other"
    assert {row["category"] for row in data["overloads"]} == {"pointwise", "creation"}


def test_links_lead_to_kernel_files(data, workspace):
    page_data = content(data, workspace / "below")
    (shown,) = [path for path in page_data["links"] if path.endswith("neg.py")]
    assert page_data["links"][shown] == {"text": "pointwise/neg.py", "href": "../library/pointwise/neg.py"}
    scheme = {**data, "failures": [], "overloads": [{"kernel": str(workspace / "javascript:alert(1).py")}]}
    (workspace / "javascript:alert(1).py").write_text("")
    (link,) = content(scheme, workspace)["links"].values()
    assert link["href"] == "javascript%3Aalert%281%29.py"
    assert content({**data, "failures": [], "overloads": [{"kernel": "gone.py"}]}, workspace)["links"] == {}


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(page, data):
    """The page with a campaign, a dialog and changes, too."""
    more = {
        "campaigns": [CAMPAIGN],
        "dialogs": [DIALOG, FAILED_DIALOG],
        "searches": [SEARCH],
        "changes": changes({**data, "overloads": []}, data),
    }
    everything = json.loads(json.dumps({**data, **more}))
    add_reasons(everything)
    path = page.with_name("whole.html")
    path.write_text(html(everything, path.parent))
    return path


@pytest.fixture
def opened(browser, whole):
    """A function that opens the page; at the end there were no errors, and nothing was asked of any network."""
    with clean_pages(browser, offline=True) as (opened, origins):
        yield lambda **options: opened(whole.as_uri(), **options)
    assert origins <= {"file://", "data://", "blob://"}


def cells(shown, table, field):
    return shown.locator(f"#{table} .tabulator-row .tabulator-cell[tabulator-field={field}]").all_inner_texts()


def test_every_view_opens(opened, data):
    shown = opened()
    for tab in shown.locator("#tabs button").all():
        tab.click()
        assert tab.get_attribute("aria-selected") == "true" and shown.locator("main h2").count() > 0
    assert shown.locator("#tabs button").count() == 8
    shown.get_by_role("tab", name="Overview").click()
    bars = shown.evaluate("document.getElementById('shares').data.map((bars) => bars.y)")
    assert bars == [[line["percent"] for line in data["headlines"]]]


def test_each_series_of_a_chart_has_its_own_color(opened):
    for scheme in ("light", "dark"):
        colors = opened(color_scheme=scheme).evaluate("[0, 1, 2, 3, 4, 5, 6, 7].map(widgets.series)")
        assert len(set(colors)) == 8, (scheme, colors)


def test_a_malformed_address_shows_the_first_view(opened, whole):
    shown = opened()
    shown.goto("about:blank")
    shown.goto(whole.as_uri() + "#%E0%A4%A")
    assert shown.locator("#tabs [aria-selected=true]").inner_text(timeout=5000) == "Overview"


def test_the_tree_of_a_search_is_drawn(opened):
    shown = opened()
    shown.get_by_role("tab", name="Search for speed").click()
    assert (shown.locator(".tree circle").count(), shown.locator(".tree line").count()) == (3, 3)
    words = shown.locator(".tree text").all_text_contents()
    assert "1, inherit" in words and "1.25 x, 50 % of limit" in words and "WRONG" in words
    assert HOSTILE in shown.locator("#candidates-0").inner_text()
    assert "Candidate 3 has begun and not ended" in shown.locator("main").inner_text()


def test_changes_are_shown(opened):
    shown = opened()
    assert "3 overloads more pass, 0 fewer" in shown.locator("main").inner_text()
    assert cells(shown, "changes", "state")[0] == "✗ WRONG" and cells(shown, "changes", "state")[-1] == "✓ PASS"


def test_the_headline_is_at_the_top(opened, data):
    shown = opened()
    assert shown.locator("#headlines .headline").all_inner_texts() == [line["text"] for line in data["headlines"]]
    below = shown.locator("#tabs").bounding_box()["y"]
    assert all(line.bounding_box()["y"] < below for line in shown.locator("#headlines .headline").all())


def test_sorting_and_filtering(opened):
    shown = opened()
    shown.get_by_role("tab", name="Overloads").click()
    names, kinds = cells(shown, "overloads", "overload"), cells(shown, "overloads", "state")
    assert names[0] == "aten::exp" and len(names) > 3
    assert kinds[:5] == ["✗ WRONG", "○ no kernel", *3 * ["✓ PASS"]], "failures come first in a category"
    shown.get_by_role("button", name="Collapse all").click()
    assert cells(shown, "overloads", "overload") == []
    shown.get_by_role("button", name="Expand all").click()
    head = shown.locator("#overloads .tabulator-col[tabulator-field=calls] .tabulator-col-title")
    head.click()
    head.click()
    calls = [int(text) for text in cells(shown, "overloads", "calls")[:5]]
    assert calls == sorted(calls, reverse=True)
    shown.locator("#overloads .tabulator-col[tabulator-field=state] input").press_sequentially("wrong")
    shown.locator("#overloads .tabulator-row", has_text="aten::neg").wait_for(state="detached")
    assert cells(shown, "overloads", "overload") == ["aten::exp"]


def test_categories_fold_by_keyboard(opened):
    shown = opened()
    shown.get_by_role("tab", name="Overloads").click()
    group = shown.locator("#overloads .tabulator-group", has_text="pointwise")
    assert group.inner_text() == "pointwise 5: 1 fail, 1 without a kernel, 3 pass"
    assert group.get_attribute("aria-expanded") == "true" and "aten::neg" in cells(shown, "overloads", "overload")
    group.focus()
    shown.keyboard.press("Enter")
    shown.locator("#overloads .tabulator-row", has_text="aten::neg").wait_for(state="detached")
    assert cells(shown, "overloads", "overload") == ["aten::linspace"]
    assert group.get_attribute("aria-expanded") == "false"


def test_every_table_with_verdicts_has_failures_first_and_a_reason(opened):
    shown = opened(viewport={"width": 2400, "height": 1200})
    for view in ("Overview", "Overloads", "Failing cases", "OpInfo", "Campaigns", "Search for speed"):
        shown.get_by_role("tab", name=view).click()
        tables = shown.locator(".tabulator", has=shown.locator(".status")).all()
        assert tables, view
        for table in tables:
            assert table.locator(".tabulator-col-title", has_text="reason").count() == 1, view
            if not table.locator(".tabulator-group").count():
                column = table.locator(".tabulator-row").all()
                signs = ["✗○–✓".index(row.locator(".status").first.inner_text()[0]) for row in column]
                assert signs == sorted(signs) and signs, view


def test_no_column_is_empty(opened):
    shown = opened(viewport={"width": 2400, "height": 1200})
    for tab in shown.locator("#tabs button").all():
        tab.click()
        for table in shown.locator(".tabulator").all():
            heads = table.locator(".tabulator-col[tabulator-field]").all()
            fields = [head.get_attribute("tabulator-field") for head in heads if head.is_visible()]
            for field in fields:
                texts = table.locator(f".tabulator-row .tabulator-cell[tabulator-field={field}]").all_text_contents()
                assert any(text.strip() not in ("", "-") for text in texts), (tab.inner_text(), field)
    shown.get_by_role("tab", name="Performance").click()
    assert shown.locator(".tabulator-col[tabulator-field=shapes]").count() == 1
    shown.get_by_role("tab", name="Overview").click()
    assert shown.locator(".tabulator-col[tabulator-field=trend]").count() == 0, "without --since there is no trend"


def test_no_chart_of_a_single_number(opened):
    shown = opened()
    shown.get_by_role("tab", name="Performance").click()
    assert shown.locator(".chart").count() == 0 and cells(shown, "figures", "speedup") == ["0.75"]
    shown.get_by_role("tab", name="Campaigns").click()
    assert shown.locator("#outcomes-one").count() == 1
    shown.get_by_role("tab", name="Traces").click()
    assert "Tensors by dtype: float32: " in shown.locator("main").inner_text()


def test_a_failing_case_in_the_drawer(opened):
    shown = opened()
    shown.get_by_role("tab", name="Failing cases").click()
    row = shown.locator("#failing .tabulator-row").first
    assert row.get_attribute("aria-expanded") == "false" and not shown.locator("#drawer").is_visible()
    row.click()
    title = shown.locator("#drawer-title")
    assert title.inner_text() == "aten::exp: WRONG" and title.evaluate("e => e === document.activeElement")
    assert row.get_attribute("aria-expanded") == "true" and row.get_attribute("aria-controls") == "drawer"
    assert shown.get_by_role("dialog", name="aten::exp: WRONG").is_visible()
    text = shown.locator("#drawer").inner_text()
    assert "points shows the largest difference" not in text, "each point is one element"
    assert "--case" in text and "arguments of this case" in text and "1.01 * tl.exp(" in text
    assert shown.locator("#picture .heatmaplayer image").count() == 1
    box = shown.locator("#drawer").bounding_box()
    assert box["x"] + box["width"] == 1280 and box["x"] > 300, "it stands at the right side"
    shown.get_by_role("button", name="Close").click()
    assert not shown.locator("#drawer").is_visible()
    assert row.evaluate("e => e === document.activeElement") and row.get_attribute("aria-expanded") == "false"


def test_a_picture_of_many_elements_says_that_it_pools_them(opened):
    shown = opened()
    words = shown.evaluate("widgets.pictureScale({ shape: [2, 100, 192], rows: Array(48).fill(Array(96).fill(0)) })")
    assert "A row is a position in all dimensions but the last." in words
    assert "Each of the 4608 points shows the largest difference among about 8 elements." in words


def test_the_drawer_by_keyboard(opened):
    shown = opened()
    shown.locator("#tabs [aria-selected=true]").focus()
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("document.activeElement.dataset.view") == "overloads"
    shown.keyboard.press("ArrowRight")
    row = shown.locator("#failing .tabulator-row").nth(1)
    row.focus()
    shown.keyboard.press("Enter")
    assert shown.locator("#drawer-title").inner_text() == "aten::exp: WRONG"
    for _ in range(12):  # the focus stays in the drawer, or leaves the page for the browser
        shown.keyboard.press("Tab")
        assert shown.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#drawer')")
    shown.keyboard.press("Escape")
    assert not shown.locator("#drawer").is_visible()
    assert row.evaluate("e => e === document.activeElement")


def test_every_row_opens(opened):
    shown = opened()
    for tab in shown.locator("#tabs button").all():
        tab.click()
        for table in shown.locator(".tabulator").all():
            row = table.locator(".tabulator-row[aria-controls]").last
            row.focus()
            shown.keyboard.press("Enter")
            assert shown.locator("#drawer-title").inner_text() and shown.locator("#details dt").count()
            shown.keyboard.press("Escape")
            assert row.evaluate("e => e === document.activeElement"), tab.inner_text()


def test_from_an_overload_to_its_failing_case(opened):
    shown = opened()
    shown.get_by_role("tab", name="Overloads").click()
    row = shown.locator("#overloads .tabulator-row", has_text="aten::exp").first
    row.click()
    link = shown.locator("#details a").first
    assert link.inner_text() == f"library/pointwise/{HOSTILE}.py"
    assert link.get_attribute("href") == "library/pointwise/%3Cimg%20src%3Dx%20onerror%3Dhostile%3D1%3E.py"
    shown.get_by_role("button", name="Failing case in net").click()
    assert shown.locator("#drawer-title").inner_text() == "aten::exp: WRONG"
    shown.keyboard.press("Escape")
    assert row.evaluate("e => e === document.activeElement")


COPIED = """() => {
    window.copied = [];
    document.addEventListener('copy', () => window.copied.push(document.activeElement.value));
}"""


@pytest.mark.parametrize("clipboard", ["granted", "refused", "missing"])
def test_copying(opened, data, clipboard):
    """From a file: with the clipboard's own interface, where it refuses, and where there is none."""
    shown = opened(permissions=["clipboard-read", "clipboard-write"] if clipboard == "granted" else [])
    if clipboard != "granted":
        replaced = "undefined" if clipboard == "missing" else "{ writeText: () => Promise.reject(new Error('no')) }"
        shown.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {replaced} }})")
    shown.evaluate(COPIED)

    def copied():
        if clipboard == "granted":
            return shown.evaluate("navigator.clipboard.readText()")
        return shown.evaluate("window.copied.at(-1)")

    button = shown.locator("#headlines button").first
    button.click()
    shown.locator("#headlines button", has_text="Copied").wait_for()
    assert copied() == data["headlines"][0]["text"] and button.evaluate("e => e === document.activeElement")
    shown.locator("#missing .tabulator-row").first.click()
    shown.locator("#drawer .copy").click()
    shown.locator("#drawer .copy", has_text="Copied").wait_for()
    assert copied() == data["missing"][0]["command"] and "--case" in copied()


def test_every_command_has_a_copy_button(opened, data):
    shown = opened(viewport={"width": 2400, "height": 1200})
    for table, commands in (("models", data["models"]), ("missing", data["missing"])):
        buttons = shown.locator(f"#{table} .tabulator-row .copy")
        assert buttons.count() == len(commands)
        buttons.first.click()
        assert not shown.locator("#drawer").is_visible(), "a click on the button is none on the row"


def downloaded(shown, name):
    with shown.expect_download() as event:
        shown.get_by_role("button", name=name, exact=True).click()
    return event.value.suggested_filename, Path(event.value.path()).read_bytes().decode()


def test_downloads(opened):
    shown = opened(accept_downloads=True)
    shown.get_by_role("tab", name="Campaigns").click()
    name, text = downloaded(shown, "Download dialogs as CSV")
    head, first, second = csv.reader(io.StringIO(text, newline=""))
    assert name == "dialogs.csv" and head == ["overload", "campaign", "stage", "reason", "calls", "tokens"]
    assert first[:4] == [f"'{FORMULA}", "one", "REFUSED", "'@SUM(1)"] and first[head.index("tokens")] == "-5"
    assert second[:3] == ["aten::exp", "one", "PASSED"]
    name, text = downloaded(shown, "Download dialogs as JSON")
    rows = json.loads(text)
    assert name == "dialogs.json" and (rows[0]["overload"], rows[0]["tokens"]) == (FORMULA, -5)
    assert list(rows[0]) == head
    for tab in shown.locator("#tabs button").all():
        tab.click()
        for head in shown.locator(".tabulator-col[tabulator-field]:visible").all():
            title = head.locator(".tabulator-col-title").inner_text()
            assert title == head.get_attribute("tabulator-field").replace("_", " ")
        for table in shown.locator(".table").all():
            assert [table.get_by_role("button", name=f"as {kind}").count() for kind in ("CSV", "JSON")] == [1, 1]


CELLS = [  # values and what a CSV has for them
    *((f"{sign}1+1", f"'{sign}1+1") for sign in "=+-@"),
    ("\tx", "'\tx"),
    ("\rx", '"\'\rx"'),
    ("+1", "'+1"),
    ("-x", "'-x"),
    ("-", "'-"),
    ("-1.5", "-1.5"),
    ("-1.5e-7", "-1.5e-7"),
    (-3, "-3"),
    (2.5, "2.5"),
    (None, ""),
    ('a"b,c', '"a""b,c"'),
    ("plain", "plain"),
]


def test_cells_of_a_csv(opened):
    values, cells_of_csv = zip(*CELLS, strict=True)
    assert opened().evaluate("values => values.map(widgets.csvCell)", values) == list(cells_of_csv)


def test_the_index_leads_to_headings(opened):
    shown = opened()
    shown.get_by_role("tab", name="Overloads").click()
    links = shown.locator("nav.index a")
    assert links.all_inner_texts() == shown.locator("main h2").all_inner_texts()
    links.last.click()
    address = shown.evaluate("location.hash")
    assert address == "#overloads/by-model"
    shown.goto("about:blank")
    shown.go_back()
    shown.reload()
    assert shown.locator("#tabs [aria-selected=true]").inner_text() == "Overloads"
    assert shown.locator("main h2", has_text="By model").bounding_box()["y"] < 900
    shown.get_by_role("tab", name="Failing cases").click()
    assert shown.locator("nav.index").count() == 0, "a short view has no index"


def open_dialog(shown):
    """Click the dialog that passed until it opens: while charts are drawn above it a click may miss it."""
    shown.get_by_role("tab", name="Campaigns").click()
    for _ in range(10):
        shown.locator("#dialogs .tabulator-row", has_text="PASSED").click()
        if shown.locator("#drawer").is_visible():
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
    assert HOSTILE in shown.locator("#drawer").inner_text()
    shown.keyboard.press("Escape")
    open_dialog(shown)
    assert HOSTILE in shown.locator("#drawer").inner_text()
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
    assert shown.locator("#drawer .added").all_inner_texts() == ["+c"]
    assert shown.locator("#drawer .removed").all_inner_texts() == ["-b"]


def background(shown):
    return shown.evaluate("getComputedStyle(document.body).backgroundColor")


CONTRASTS = """() => {
    // Of each visible text with its background (WCAG 2.2, contrast ratio).
    const parse = (color) => color.match(/[\\d.]+/g).map(Number);
    const luminance = (rgb) => rgb.slice(0, 3).map((p) => p / 255)
        .map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4))
        .reduce((sum, p, i) => sum + p * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const color = parse(getComputedStyle(e).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const drawer = document.getElementById("drawer"), found = [];
    const walker = document.createTreeWalker(drawer.open ? drawer : document.body, NodeFilter.SHOW_TEXT);
    const add = (element, color, text) => {
        const [low, high] = [luminance(parse(color)), luminance(behind(element))].sort((a, b) => a - b);
        found.push([(high + 0.05) / (low + 0.05), element.className, text.trim().slice(0, 40)]);
    };
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || element.closest("svg, script, style, noscript")) continue;
        if (element.checkVisibility()) add(element, getComputedStyle(element).color, walker.currentNode.data);
    }
    for (const input of document.querySelectorAll("input")) {
        add(input, getComputedStyle(input, "::placeholder").color, input.placeholder);
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(opened, scheme):
    shown = opened(color_scheme=scheme)
    seen = []
    for tab in shown.locator("#tabs button").all():
        tab.click()
        seen += shown.evaluate(CONTRASTS)
    shown.get_by_role("tab", name="Failing cases").click()
    shown.locator("#failing .tabulator-row").first.hover()
    seen += shown.evaluate(CONTRASTS)
    shown.locator("#failing .tabulator-row").first.click()
    seen += shown.evaluate(CONTRASTS)
    shown.keyboard.press("Escape")
    open_dialog(shown)
    seen += shown.evaluate(CONTRASTS)
    assert [row for row in seen if row[0] < 4.5] == [] and len(seen) > 300
    texts = {text for _, _, text in seen}
    assert {"WRONG", "PASS", "no kernel", "filter", "Close"} <= texts


def test_the_measure_of_contrast(opened):
    shown = opened()
    shown.evaluate("document.getElementById('main').style.color = '#8a8a8a'")
    assert min(row[0] for row in shown.evaluate(CONTRASTS)) < 4.5


def test_both_themes(opened):
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    assert background(light) == "rgb(255, 255, 255)" != background(dark)
    light.locator("#theme").click()
    assert background(light) == background(dark) and light.locator("#theme").inner_text() == "Light"


CLIPPED = """all => all.filter((title) => {
    const inner = title.getBoundingClientRect(), outer = title.closest(".chart").getBoundingClientRect();
    return inner.left < outer.left || inner.right > outer.right || inner.top < outer.top || inner.bottom > outer.bottom;
}).map((title) => title.textContent)"""


@pytest.mark.parametrize("width", [400, 800])
def test_no_horizontal_scrolling(opened, width):
    shown = opened(viewport={"width": width, "height": 800})
    for tab in shown.locator("#tabs button").all():
        tab.click()
        assert shown.evaluate("document.documentElement.scrollWidth") <= width, tab.inner_text()
        for table in shown.locator(".tabulator-tableholder").all():
            assert table.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), tab.inner_text()
        titles = shown.locator(".chart .g-xtitle text, .chart .g-ytitle text")
        assert titles.evaluate_all(CLIPPED) == [], tab.inner_text()
        cut = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
        assert shown.locator(".tabulator-cell.identifies").evaluate_all(cut) == [], tab.inner_text()
        for table in shown.locator(".tabulator").all():
            table.locator(".tabulator-row[aria-controls]").first.focus()
            shown.keyboard.press("Enter")
            assert shown.locator("#drawer").evaluate("e => e.scrollWidth <= e.clientWidth"), tab.inner_text()
            shown.keyboard.press("Escape")


def test_columns_collapse_into_the_drawer(opened):
    shown = opened(viewport={"width": 400, "height": 800})
    assert shown.locator("#missing .tabulator-col[tabulator-field=reason]").is_hidden()
    shown.locator("#models .tabulator-row").first.click()
    assert "time covered" in shown.locator("#details").inner_text()
    assert "enable " in shown.locator("#details .command").inner_text()
