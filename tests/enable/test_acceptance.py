"""Acceptance without regression, on a library of a few kernels and cases of one operator, without a model."""

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
import torch
from sources import SOFTMAX

from capture import Recorder
from enable.cover.coverage import cases_by_overload
from enable.cover.self_consistency import callable_overloads
from enable.cover.session import Session
from enable.refine.acceptance import Accepted, roll_back, try_kernel
from enable.refine.acceptance import accept as accept_tried
from enable.refine.evidence import HELD_BACK, split
from enable.refine.history import History, history_table, list_table
from enable.refine.proposal import Proposal, Refused
from enable.workspace import Workspace
from generate.kernel_library import KERNELS
from generate.versions import Versions
from traces import UserError
from verify.cases.case import case_of_values
from verify.judging.judge import Job
from verify.outcome import LINT, UNREACHED, Outcome

EXP = (KERNELS / "pointwise" / "exp.py").read_text()
CASES = [case_of_values("aten::exp", self=torch.linspace(-2, 2, 40 + n)) for n in range(10)]
SIZES = {case.id: 40 + n for n, case in enumerate(CASES)}
SHOWN, HELD = split(CASES)
CALLS = {"aten::exp", "aten::div.Tensor", "aten::sum.dim_IntList"}
X = torch.linspace(-2, 2, 60).view(5, 12)
SOFTMAX_CASES = [case_of_values("aten::_softmax", self=X * n, dim=1, half_to_float=False) for n in (1, 2)]
OTHERS = {
    "aten::div.Tensor": case_of_values("aten::div.Tensor", self=X, other=X.exp().sum(1, keepdim=True)),
    "aten::sum.dim_IntList": case_of_values("aten::sum.dim_IntList", self=X, dim=[1], keepdim=True, dtype=None),
}


def accept(session, proposal, provenance=None):
    return accept_tried(session, try_kernel(session, proposal), provenance)


def exp(*wrong, remark=""):
    """The exp kernel, wrong for flat tensors of these sizes."""
    head, body = EXP.replace("import triton\n", "import torch\nimport triton\n", 1).split("def wrapper(", 1)
    signature, body = body.split("\n", 1)
    bad = f"    if self.numel() in {(*wrong, -1)}:\n        return torch.empty_like(self)\n"
    return f"{head}# {remark}\n\n\ndef wrapper({signature}\n{bad}{body}" if wrong else f"{EXP}# {remark}\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    base = tmp_path_factory.mktemp("library")
    for name in ("pointwise/exp", "pointwise/div", "reduction/sum"):
        (base / name).parent.mkdir(exist_ok=True)
        shutil.copy(KERNELS / f"{name}.py", base / f"{name}.py")
    return base


@pytest.fixture(scope="module")
def shared(tmp_path_factory, library):
    """A session with its children; each test has it with a workspace's kernels of its own."""
    with Session(Workspace(tmp_path_factory.mktemp("workspace")), library, "sim") as session:
        yield session


@pytest.fixture
def session(shared):
    shutil.rmtree(shared.workspace.kernels, ignore_errors=True)
    shared.reload_library()
    return shared


def proposal(session, source, **changes):
    path = session.workspace.kernels / "pointwise" / "exp.py"
    return Proposal(
        **{"path": path, "source": source, "shown": SHOWN, "held_back": HELD, "samples": False, "extended": 0} | changes
    )


def versions(session, name="exp", group="pointwise"):
    return Versions(session.workspace.kernels).list(group, name)


def softmax(session, **changes):
    path = session.workspace.kernels / "refined" / "_softmax.py"
    cases = [*SOFTMAX_CASES, *SHOWN]
    fields = {"path": path, "source": SOFTMAX, "shown": cases, "held_back": HELD, "self_consistent": True}
    fields |= {"few_cases": True, "samples": False, "extended": 0}
    return Proposal(**{**fields, **changes})


def verify_callees(session):
    matches = {o: session.library.match(o) for o in CALLS}
    cases = {**{o: [c] for o, c in OTHERS.items()}, "aten::exp": CASES[:2]}
    verdicts = session.judge.judge([Job(m.plan, m.kernel, tuple(cases[o]), m.copy) for o, m in matches.items()])
    assert {v.outcome for v in verdicts.values()} == {Outcome.PASS}


def test_split_is_by_the_case_alone():
    assert 0 < len(HELD) <= len(CASES) // 2 and {*map(id, SHOWN), *map(id, HELD)} == {*map(id, CASES)}
    assert split(CASES[::-1])[1] == HELD[::-1]
    assert split(CASES[: HELD_BACK - 1]) == (CASES[: HELD_BACK - 1], [])
    other = SOFTMAX_CASES[0]
    assert split([*CASES, other]) == ([*SHOWN, other], HELD)
    assert split(CASES, show=[HELD[0].id])[1] == HELD[1:]


def test_a_case_that_is_shown_stays_so_when_more_are_recorded():
    many = [case_of_values("aten::exp", self=torch.full((2,), float(n))) for n in range(200)]
    before, after = (set(map(id, split(many[:n])[0])) for n in (100, 200))
    assert before <= after
    share = len(split(many)[1]) / len(many)
    assert 0.1 < share < 0.3


def test_accepted_with_provenance(session):
    asked = proposal(session, exp(remark="better"), samples=True, extended=2)
    done = accept(session, asked, {"traces": ["t"], "model": "m"})
    assert isinstance(done, Accepted), done
    assert session.library.kernel("aten::exp").written == done.path.read_text() == exp(remark="better")
    (version,) = versions(session)
    told = version.provenance
    assert (version.number, told["model"], told["traces"]) == (done.version, "m", ["t"])
    assert told["cases"] == {"shown": len(SHOWN), "held_back": len(HELD)} and told["nothing_held_back"] == {}
    assert told["replaces"] and told["calls"] == [] and "torch" in told["judge"] and told["sandbox"]


def test_few_cases_hold_nothing_back_and_all_that_tells_of_the_kernel_says_so(session):
    shown, held = split(CASES[:3])
    asked = proposal(session, exp(remark="x"), shown=shown, held_back=held)
    found = accept(session, asked)
    assert isinstance(found, Refused) and found.reason.startswith("aten::exp: 3 independent cases, and a kernel is")
    assert found.reason.endswith("--few-cases") and not versions(session)
    done = accept(session, replace(asked, few_cases=True))
    assert done.provenance["nothing_held_back"] == {"aten::exp": "fewer than 5 cases"}
    assert done.provenance["few_cases"] == {"aten::exp": 3}
    told = History(session.workspace, session.base)
    assert "1 (few cases: 3)" in list_table(told.kernels()) and "few cases: 3" in history_table(told.of("aten::exp"))


NEG = """'''aten::neg(Tensor self) -> Tensor

One program an element, whatever the strides.
'''
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(self, *, out=None):
    o = torch.empty_like(self) if out is None else out
    if self.numel():
        kernel[(triton.cdiv(self.numel(), 256),)](self, o, self.numel(), BLOCK=256)
    return o
"""


STRIDED_NEG = """'''aten::neg(Tensor self) -> Tensor'''
import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)


@triton.jit
def opposite(x):
    return x * -1.0


def wrapper(self, *, out=None):
    return elementwise(opposite, self, out=out)
"""


def test_where_few_cases_were_recorded_those_made_of_them_have_to_pass(session):
    """Of an operator that had no kernel, one case of contiguous memory: the kernel takes no strides."""
    path, shown = session.workspace.kernels / "refined" / "neg.py", [case_of_values("aten::neg", self=X)]
    found = accept(session, Proposal(path, NEG, shown, samples=False, extended=24, few_cases=True))
    assert isinstance(found, Refused) and not path.exists()
    assert "that were made fail" in found.reason
    assert "from one row to the next" in found.feedback and not any(case in found.feedback for case in found.held_back)
    done = accept(session, Proposal(path, STRIDED_NEG, shown, samples=False, extended=24))
    assert isinstance(done, Accepted) and done.provenance["few_cases"] == {}


def refused(session, source, **changes):
    before = [(v.number, v.standing) for v in versions(session)], session.library.kernel("aten::exp").key
    found = accept(session, proposal(session, source, **changes))
    assert isinstance(found, Refused), found
    session.reload_library()
    assert before == ([(v.number, v.standing) for v in versions(session)], session.library.kernel("aten::exp").key)
    assert all("\n" not in reason for reason in found.reasons)
    return found


def test_a_shown_case_that_passed_is_a_regression(session):
    found = refused(session, exp(SIZES[SHOWN[2].id]))
    assert found.regressed == (SHOWN[2].id,) and not found.held_back
    assert SHOWN[2].id in found.reason and f"shape [{SIZES[SHOWN[2].id]}]" in found.feedback


def test_a_held_back_failure_is_told_to_the_user_and_not_to_the_model(session):
    case = HELD[0]
    found = refused(session, exp(SIZES[case.id]))
    assert found.held_back == (case.id,) and case.id in found.reason and "held back" in found.reason
    assert "1 CHEAT" in found.feedback  # no kernel was launched
    assert case.id not in found.feedback and str(SIZES[case.id]) not in found.feedback


def test_of_a_held_back_call_that_does_not_compile_the_model_is_told_what_the_compiler_says(session):
    case = HELD[0]
    kernel = "@triton.jit\ndef checked(x_ptr, N: tl.constexpr):\n    tl.static_assert(N < 0, 'a negative size')\n\n\n"
    source = exp(SIZES[case.id]).replace(
        "        return torch.empty_like", "        checked[(1,)](self, N=7)\n        return torch.empty_like"
    )
    found = refused(session, source.replace("def wrapper(", f"{kernel}def wrapper("))
    assert found.held_back == (case.id,) and found.outcome == "COMPILE_ERROR"
    assert found.feedback.startswith("Calls that are not shown here fail: 1 COMPILE_ERROR.")
    assert "a negative size" in found.feedback
    assert case.id not in found.feedback and str(SIZES[case.id]) not in found.feedback


def test_what_failed_before_may_fail_no_more(session):
    """The kernel in force fails a shown and a held-back case: mending the one is not enough."""
    bad = SIZES[SHOWN[0].id], SIZES[HELD[0].id]
    home = session.workspace.kernels / "pointwise"
    home.mkdir(parents=True)
    (home / "exp.py").write_text(exp(*bad))
    session.reload_library()
    found = refused(session, exp(*bad, remark="no better"))
    assert not found.regressed and not found.held_back and "shown fail" in found.reason
    found = refused(session, exp(bad[1]))
    assert not found.regressed and found.held_back == (HELD[0].id,)
    done = accept(session, proposal(session, exp(remark="mended")))
    assert isinstance(done, Accepted) and [v.action for v in versions(session)] == ["found", "accepted"]


def test_opinfo_cases_that_passed_count(session):
    from verify.cases.samples import opinfo_cases

    samples = opinfo_cases(["aten::exp"], ("float32",))
    sizes = {torch.Size(ref.shape).numel() for case in samples for ref in case.load().tensors} - {*SIZES.values()}
    found = refused(session, exp(*sizes), samples=True)
    assert found.regressed and not found.held_back and not set(found.regressed) & SIZES.keys()


def test_what_no_case_reaches_is_looked_for_and_then_refused(session):
    """An exit for tensors without elements is right, and no recorded call has such; nine dimensions no case has."""
    path = session.workspace.kernels / "pointwise" / "exp.py"
    empty, deep = (
        EXP.replace("import triton\n", "import torch\nimport triton\n", 1).replace(
            "    return elementwise", f"    if {which}:\n        return torch.empty_like(self)\n    return elementwise"
        )
        for which in ("out is None and self.numel() == 0 and self.is_floating_point()", "self.dim() == 9")
    )
    assert "no case reaches all of exp.py: line" in refused(session, empty).reason
    told = refused(session, deep, extended=8)
    assert told.reason.endswith("self.dim() == 9 was always False") and told.rule == UNREACHED
    assert isinstance(accept(session, proposal(session, empty, extended=8)), Accepted) and path.exists()


def test_other_overloads_of_the_trace_count(session):
    """exp_ is derived from exp: what fails there is seen, whichever operator was refined."""
    case = case_of_values("aten::exp_", self=torch.linspace(-1, 1, 77))
    found = refused(session, exp(77), shown=[*SHOWN, case])
    assert found.regressed == (case.id,)


def test_every_trace_of_the_workspace_counts(session):
    """A trace that the dialog was not about; of its cases, some would be held back and are not told to a model."""
    path = session.workspace.trace_path("other")
    with Recorder(path):
        for n in range(8):
            torch.exp(torch.linspace(-1, 1, 300 + n))
    (session.workspace.traces / "torn.trace").mkdir()
    try:
        cases = cases_by_overload(session.workspace.open_trace("other"))["aten::exp"]
        sizes = {c.id: c.load().tensors[0].shape[0] for c in cases}
        open_, closed = (half[0] for half in split(cases))
        found = refused(session, exp(sizes[open_.id]))
        assert found.regressed == (open_.id,) and str(sizes[open_.id]) in found.feedback
        found = refused(session, exp(sizes[closed.id]))
        assert found.regressed == (closed.id,) and not found.held_back
        assert str(sizes[closed.id]) not in found.feedback and "1 CHEAT" in found.feedback
        done = accept(session, proposal(session, exp(remark="all traces")))
        assert done.provenance["traces_asked"] == ["other"] and "torn" in done.provenance["traces_unread"]
    finally:
        shutil.rmtree(session.workspace.traces)


def test_every_guard_is_asked(session):
    cheat = EXP.replace("return elementwise(exp, self,", "return elementwise(exp, torch.exp(self),")
    assert cheat != EXP and "lint" in refused(session, cheat).reason
    assert "not valid Python" in refused(session, "no kernel").reason
    done = accept(session, proposal(session, exp(remark="guarded")))
    sha256 = session.library.kernel("aten::exp").key
    with closing(sqlite3.connect(session.workspace.root / "verdicts.sqlite")) as db:
        columns = "strict, allowed, off, repeated, sandbox"
        told = (f"%{sha256}%",)
        rows = db.execute(f"SELECT DISTINCT {columns} FROM verdicts WHERE kernel LIKE ?", told).fetchall()
    assert isinstance(done, Accepted) and any(row[3] for row in rows)
    assert all(row[:3] == (1, "", "") and row[4].startswith("landlock") for row in rows)


def test_nothing_to_judge_is_no_acceptance(session):
    found = refused(session, exp(remark="x"), shown=[], held_back=[])
    assert "no recorded case" in found.reason


def test_self_consistent_from_verified_to_refused_changes(session, library):
    assert "library-call" not in refused_softmax(session, self_consistent=False).feedback
    verify_callees(session)
    may = callable_overloads(session.workspace, session.library, session.platform, ["aten::_softmax"])
    assert may == CALLS
    done = accept(session, softmax(session))
    assert isinstance(done, Accepted), done
    assert set(done.provenance["calls"]) == CALLS and done.provenance["self_consistent"]

    # Nobody whom softmax calls may call it back.
    assert callable_overloads(session.workspace, session.library, session.platform, ["aten::exp"]) == {
        "aten::div.Tensor",
        "aten::sum.dim_IntList",
    }
    head, body = EXP.replace("import triton\n", "import torch\nimport triton\n", 1).split("def wrapper(", 1)
    signature, _ = body.split("\n", 1)
    back = f"{head}def wrapper({signature}\n    return torch.ops.aten._softmax.default(self, 0, False)\n"
    assert "calls aten::_softmax" in refused(session, back, self_consistent=True).reason

    # A callee is judged with its callers.
    bad = exp(X.numel())
    found = refused(session, bad, shown=[*SHOWN, *SOFTMAX_CASES])
    assert set(found.regressed) == {c.id for c in SOFTMAX_CASES}


def refused_softmax(session, **changes):
    found = accept(session, softmax(session, **changes))
    assert isinstance(found, Refused)
    return found


def test_an_unverified_operator_may_not_be_called(session, tmp_path, library):
    with Session(Workspace(tmp_path / "fresh"), library, "sim") as fresh:
        found = refused_softmax(fresh)
        assert "lint" in found.reason and "torch.ops.aten" in found.feedback and found.rule == LINT


def test_roll_back_takes_effect_at_once_and_breaks_no_caller(session, library):
    verify_callees(session)
    mine = session.workspace.kernels / "pointwise" / "exp.py"
    assert isinstance(accept(session, proposal(session, exp(remark="one"))), Accepted)
    assert isinstance(accept(session, proposal(session, exp(remark="two"))), Accepted)
    assert roll_back(session, "pointwise", "exp") == 3
    assert session.library.kernel("aten::exp").written == exp(remark="one")
    with pytest.raises(UserError, match="no version 9"):
        roll_back(session, "pointwise", "exp", 9)
    matches = session.library.match("aten::exp")
    session.judge.judge([Job(matches.plan, matches.kernel, tuple(CASES[:1]), matches.copy)])
    assert isinstance(accept(session, softmax(session)), Accepted)

    base, held = library / "pointwise" / "exp.py", library / "exp.held"
    base.rename(held)
    try:
        with pytest.raises(UserError, match="aten::_softmax would call aten::exp, which no kernel would serve"):
            roll_back(session, "pointwise", "exp", 0)
        assert mine.is_file() and len(versions(session)) == 3
    finally:
        held.rename(base)
    assert roll_back(session, "pointwise", "exp", 0) == 4 and not mine.exists()
    kernels = {k.written for k in session.library.match("aten::_softmax").kernel.reached}
    assert EXP in kernels


def test_a_roll_back_that_would_close_a_cycle_is_refused(session):
    head, body = EXP.replace("import triton\n", "import torch\nimport triton\n", 1).split("def wrapper(", 1)
    signature, _ = body.split("\n", 1)
    back = f"{head}def wrapper({signature}\n    return torch.ops.aten._softmax.default(self, 0, False)\n"
    put = Versions(session.workspace.kernels).put
    put("pointwise", "exp", back, {}), put("pointwise", "exp", EXP, {})
    put("refined", "_softmax", SOFTMAX, {})
    with pytest.raises(UserError, match="aten::exp calls aten::_softmax, which calls aten::exp|aten::_softmax calls"):
        roll_back(session, "pointwise", "exp", 1)
    assert Counter(v.action for v in versions(session)) == {"accepted": 2}
    assert session.reload_library().kernel("aten::exp").written == EXP
