"""Tables in terminals of 80 and 60 columns: names are whole, and lines are no longer than the terminal."""

import json

import pytest
import torch
from program import enable
from terminals import on_terminal, plain

from capture import Recorder
from enable.campaigns.tables import campaign_lines, report_lines
from enable.cli import run
from enable.survey.stages import ModelRow
from enable.survey.survey import Surveyed, survey_tables
from enable.tables import refinement_lines, table
from enable.terminal import summary_line

WIDTHS = pytest.mark.parametrize("columns", [80, 60])
LONG = "aten::_fused_adamw_.tensor_lr"
NAMES = {"aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::linalg_householder_product"}


MINE = "narrow::an_operator_without_kernel"


@torch.library.custom_op(MINE, mutates_args=())
def operator(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A directory with a trace whose overloads have long names; no kernel serves the last one."""
    directory = tmp_path_factory.mktemp("narrow")
    torch.manual_seed(0)
    x, weight = torch.randn(6, 8, requires_grad=True), torch.randn(8)
    with Recorder(directory / ".enable" / "traces" / "a_trace_with_a_long_name.trace") as recorder:
        torch.nn.functional.layer_norm(x, (8,), weight, weight).sum().backward()
        torch.linalg.householder_product(x.detach().mT.contiguous(), weight[:3])
        operator(x.detach())
        recorder.step()
    return directory


def shown(columns, *arguments, cwd, monkeypatch):
    monkeypatch.chdir(cwd)
    with on_terminal(columns) as terminal:
        assert run([str(a) for a in arguments]) in (0, 1), terminal
    return [plain(line) for line in terminal.printed.replace("\r\n", "\n").split("\n") if "\r" not in line]


def names_in(lines):
    """The first column, with the parts of wrapped names joined."""
    names = []
    for line in lines:
        if not line.startswith(" "):
            names.append(line.split()[0])
        elif not line.startswith("   "):
            names[-1] += line.split()[0]
    return names


def rows_of(lines):
    """The table: lines before the first empty one."""
    return lines[: lines.index("")] if "" in lines else lines


@WIDTHS
@pytest.mark.parametrize("words", [["coverage"], ["coverage", "--missing"], ["trace", "show"]], ids=" ".join)
def test_overloads_of_a_trace_are_whole(columns, words, workspace, monkeypatch):
    lines = rows_of(shown(columns, *words, "a_trace_with_a_long_name", cwd=workspace, monkeypatch=monkeypatch))
    lines = [line for line in lines if not line.startswith("enable: ")]
    assert set(names_in(lines)) >= ({MINE} if "--missing" in words else NAMES | {MINE})
    assert max(map(len, lines)) <= columns and "…" not in "".join(lines)


@WIDTHS
def test_traces_are_whole(columns, workspace, monkeypatch):
    lines = rows_of(shown(columns, "trace", "list", cwd=workspace, monkeypatch=monkeypatch))
    assert any(line.startswith("a_trace_with_a_long_name ") for line in lines)
    assert max(map(len, lines)) <= columns


@WIDTHS
@pytest.mark.parametrize(("words", "key"), [(["library", "list"], "kernel"), (["library", "table"], "overload")])
def test_kernels_are_whole(columns, words, key, workspace, monkeypatch):
    lines = rows_of(shown(columns, *words, cwd=workspace, monkeypatch=monkeypatch))
    data = json.loads(enable(*words, "--json", cwd=workspace).stdout)
    names = {row[key] for row in next(iter(data.values()))}
    assert names <= set(names_in(lines))
    assert max(map(len, lines)) <= columns


@WIDTHS
def test_versions_of_a_kernel_are_whole(columns, tmp_path, monkeypatch):
    (tmp_path / "abs.py").write_text(enable("library", "show", "aten::abs", cwd=tmp_path).stdout)
    added = enable("library", "add", "abs.py", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    lines = rows_of(shown(columns, "library", "history", "abs", cwd=tmp_path, monkeypatch=monkeypatch))
    assert lines[0].split()[:2] == ["version", "standing"] and lines[1].split()[0] == "1"
    assert max(map(len, lines)) <= columns


DIALOGS = {"overload": LONG, "category": "optimizers", "exit": "PASSED", "dialogs": 1, "calls": 12, "tokens": 123456}
DIALOGS |= {"kernel": "/a/long/directory/that/holds/a/workspace/kernels/optimizers/fused_adamw.py", "detail": ""}
RESULT = {"campaign": "first", "total": 1, "exits": {"PASSED": 1}, "calls": 12, "tokens": 123456}
CAMPAIGN = {"campaign": "a_campaign_with_a_long_name", "model": "a-model-with-a-long-name", "passed": 1, "total": 2}
CAMPAIGN |= {"percent": 50.0, "calls": 12, "calls_of_passed": 3.5, "tokens": 123456, "categories": {}}
CAMPAIGN |= {"seconds": {"model": 1234.0, "tests": 5678.0}, "passed_within_calls": {1: 50.0}, "feedback": {}}
CAUSE = {"operators": [LONG, f"{LONG}2"], "cause": "compile error: " + "a long reason " * 6}
REPORT = {"campaigns": [CAMPAIGN, CAMPAIGN | {"campaign": "second"}], "differing": {}, "causes": [CAUSE]}
REPORT |= {"union": {"passed": [LONG], "left": []}}
SURVEYED = Surveyed("sim", 1, (ModelRow("a_model_with_a_long_name", "transformers:GPT2LMHeadModelWithALongName"),))
TABLES = {
    "refine": (lambda: refinement_lines([DIALOGS]), [LONG]),
    "generate": (lambda: campaign_lines(RESULT | {"operators": [DIALOGS]}, "enable"), [LONG]),
    "campaign report": (lambda: report_lines(REPORT), ["a_campaign_with_a_long_name", "second"]),
    "survey": (lambda: survey_tables(SURVEYED, "enable survey"), ["a_model_with_a_long_name"]),
}


@WIDTHS
@pytest.mark.parametrize("name", TABLES)
def test_results_of_models_and_dialogs_are_whole(columns, name):
    made, names = TABLES[name]
    with on_terminal(columns):
        lines = [plain(line) for line in made().split("\n")]
    tabular = [line for line in lines if "  " in line and not line.startswith(" ")]
    assert max(map(len, tabular)) <= columns, tabular
    assert set(names) <= set(names_in(line for line in lines if line))


def test_a_reason_is_wrapped_after_optional_columns_are_dropped():
    row = {"overload": LONG, "calls": 12, "kernel": "optimizers/fused_adamw.py", "detail": "one reason " * 8}
    with on_terminal(60):
        lines = table([row], optional=("kernel", "calls")).split("\n")
    assert lines[0].split() == ["overload", "calls", "detail"]
    assert " ".join(lines).count("reason") == 8 and len(lines) > 2


def test_an_empty_column_is_dropped_first():
    row = {"overload": LONG, "kernel": "optimizers/fused_adamw.py", "a long heading without a cell": ""}
    with on_terminal(60):
        heading = table([row], optional=("kernel",)).split("\n")[0]
    assert heading.split() == ["overload", "kernel"]


SDPA = "aten::_scaled_dot_product_flash_attention_for_cpu"
COVERED = {"calls": 14, "cases": 12, "outcome": "PASS", "evidence": "few cases", "kernel": "attention/a_long_name.py"}


@pytest.mark.parametrize(("columns", "kept"), [(80, "calls cases outcome evidence"), (60, "outcome evidence")])
def test_a_long_name_is_wrapped_and_drops_no_column(columns, kept):
    names = [SDPA, f"{SDPA}_backward", "aten::mm"]
    with on_terminal(columns):
        rows = [{"overload": name, **COVERED, "detail": "for CPUs alone"} for name in names]
        lines = [plain(line) for line in table(rows, ("kernel", "cases", "calls", "evidence")).split("\n")]
    omitted = [name for name in COVERED if name not in kept.split()]
    assert lines.pop() == f"columns omitted at this width: {', '.join(omitted)}"
    assert lines[0].split() == ["overload", *kept.split(), "detail"]
    assert names_in(lines)[1:] == names and max(map(len, lines)) <= columns
    assert "aten::_scaled_dot_product_flash_  " in "".join(lines) or columns < 80  # broken after a separator


@WIDTHS
def test_a_summary_is_wrapped_below_its_text_and_its_command_is_whole(columns, monkeypatch):
    command = f"enablekit verify {SDPA}_backward"
    monkeypatch.delenv("ENABLE_PROGRAM_NAME", raising=False)
    text = (
        f"  few cases          24 passes rest on fewer than 5 independent cases; 5 make the evidence strong: {command}"
    )
    assert summary_line(text) == text
    with on_terminal(columns):
        *lines, last = summary_line(text).split("\n")
    assert last == " " * 21 + command and max(map(len, lines)) <= columns
    assert all(line.startswith(" " * 21) for line in lines[1:])
    assert " ".join(" ".join([*lines, last]).split()) == " ".join(text.split())
