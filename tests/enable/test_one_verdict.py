"""Whoever asks about a kernel and a case is told the same verdict, the strongest, and on how few cases it rests."""

import json
import re
import shlex

import pytest
import torch

from capture import Recorder
from enable.cli import run
from enable.cover.coverage import cases_by_overload
from enable.cover.recorded import recorded
from enable.cover.session import Session
from enable.library import select
from enable.tables import coverage_tables
from enable.workspace import Workspace
from traces import UserError
from verify.judging.judge import Job
from verify.outcome import Outcome

TICKETS = '''"""aten::exp(Tensor self) -> Tensor

Each program draws a ticket and reads the block of that number, which is its own where programs go in order.
"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)


@triton.jit
def nothing_drawn(tickets_ptr):
    tl.store(tickets_ptr, 0)


@triton.jit
def kernel(x_ptr, o_ptr, tickets_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.atomic_add(tickets_ptr, 1) * BLOCK
    own = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + own.to(tl.int64) * step, mask=own < n, other=0)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n)


def wrapper(self, *, out=None):
    o = torch.empty_like(self) if out is None else out
    tickets = self.new_empty(1, dtype=torch.int32)
    step = self.stride(0) if self.dim() == 1 else 1
    if self.numel():
        nothing_drawn[(1,)](tickets)
        kernel[(triton.cdiv(self.numel(), 64),)](self, o, tickets, self.numel(), step, BLOCK=64)
    return o
'''


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A workspace where one case of `exp` has passed without being repeated, and then its coverage."""
    workspace = Workspace(tmp_path_factory.mktemp("judged"))
    kernel = workspace.kernels / "pointwise" / "exp.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(TICKETS)
    x = torch.linspace(-2, 2, 700)
    with Recorder(workspace.trace_path("t")) as recorder:
        x.exp(), x.neg(), x.view(70, 10).neg(), torch.ops.aten.gelu_backward(x, x)
        recorder.step()
    with Session(workspace, None, "sim") as session:
        match = session.library.match("aten::exp")
        (case,) = cases_by_overload(workspace.open_trace("t"))["aten::exp"]
        weak = session.judge.judge([Job(match.plan, match.kernel, (case,))])
        assert [v.outcome for v in weak.values()] == [Outcome.PASS]
        return workspace, case.id, session.coverage("t")


@pytest.fixture
def enable(judged, capfd):
    """Runs a command in that workspace; returns its exit status and all that it printed."""

    def call(*words):
        capfd.readouterr()
        status = run(["--workspace", str(judged[0].root), *map(str, words)])
        return status, "".join(capfd.readouterr())

    return call


def test_a_weaker_pass_hides_no_failure(judged, enable, tmp_path):
    workspace, case, coverage = judged
    row = next(r for r in coverage.rows if r.overload == "aten::exp")
    assert row.outcome is Outcome.WRONG and not row.covered and "in another order" in row.detail
    again = f"enable --workspace {workspace.root} verify aten::exp --cases trace:t --case {case}"
    assert row.again == again and again in coverage_tables(coverage, "m", "t", str)
    status, told = enable(*shlex.split(again)[1:])
    assert status == 1 and told.startswith("exp.py: WRONG [repeat]")
    reason = "aten::exp: its kernel failed: WRONG in 1 of 1 judged cases: the same call again"
    with pytest.raises(UserError, match=f"^{reason}"):
        select(["aten::exp"], workspace=workspace.root)
    assert reason.partition(": ")[2] in select(workspace=workspace.root).left_out["aten::exp"]
    status, told = enable("export", tmp_path / "out", "--op", "aten::exp")
    assert status == 2 and told.startswith(f"enable: {reason}") and told.count("\n") == 1
    status, told = enable("export", tmp_path / "out", "--json")
    assert status == 0 and json.loads(told)["overloads"] == ["aten::gelu_backward", "aten::neg"]


def test_what_is_known_of_one_case_is_told_of_the_others(judged, enable):
    """The case that failed is not among those that are asked, and none of these fails."""
    status, told = enable("verify", "aten::exp", "--cases", "opinfo", "--limit", "1")
    assert status == 1 and told.startswith("exp.py: WRONG [repeat]\n  known from another case"), told


def test_the_traces_of_the_workspace_count_by_default(judged, enable):
    """OpInfo has no sample of it. A trace that cannot be read is named."""
    torn = judged[0].trace_path("torn")
    torn.mkdir()
    status, told = enable("verify", "aten::gelu_backward", "--limit", "1")
    torn.rmdir()
    assert status == 0 and "gelu_backward.py: PASS" in told, told
    assert "enable: the trace torn is left out: " in told
    every, few = recorded(judged[0]), recorded(judged[0], frozenset({"aten::neg"}))
    assert len(every.cases_of("aten::neg")[0]) == len(few.cases) == 2 and len(every.cases) == 4


def test_few_cases_are_marked(judged, enable, tmp_path):
    _, _, coverage = judged
    row = next(r for r in coverage.rows if r.overload == "aten::neg")
    assert (row.outcome, row.verdict, row.independent) == (Outcome.PASS, "PASS, 2 cases", 2)
    lines = coverage_tables(coverage, "m", "t", "enable verify {}".format).split("\n")
    assert "evidence" in lines[0] and "PASS, " not in "".join(lines) and "OpInfo" not in "".join(lines)
    assert any(re.match(r"aten::neg +.* PASS +few cases ", line) for line in lines), lines
    explained = [line for line in lines if line.startswith("  few cases ")]
    assert len(explained) == 1 and "fewer than 5 independent cases" in explained[0], lines
    assert [r["verdict"] for r in coverage.as_json()["rows"] if r["overload"] == "aten::neg"] == ["PASS, 2 cases"]
    status, told = enable("export", tmp_path / "out")
    assert status == 0 and "such as aten::neg, passed fewer than 5" in told
    assert "| PASS, 2 cases |" in (tmp_path / "out" / "README.md").read_text()
    assert "2 of 2 (few)" in enable("library", "table")[1]
    status, _ = enable("verify", *shlex.split(explained[0].rpartition("enable verify ")[2]))
    assert status == 0 and re.search(r"^aten::neg +.* PASS +strong ", enable("coverage", "t")[1], re.MULTILINE)
