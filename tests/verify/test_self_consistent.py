"""`--self-consistent`: wrappers that call operators of the library, and those that only pretend to."""

from pathlib import Path

import pytest
import torch
from corpus import replaced
from shared import packaged, without
from sources import SOFTMAX

from generate import BLOCKS
from generate.kernel_library import KERNELS, Library
from traces import UserError
from verify.cases.case import case_of_values
from verify.judging.judge import Job
from verify.lint import lint, load_profile
from verify.outcome import Outcome

CALLS = ("aten::div.Tensor", "aten::exp", "aten::sum.dim_IntList")
EXP = (KERNELS / "pointwise" / "exp.py").read_text()
X = torch.linspace(-2, 2, 60).view(5, 12)


def softmax(**changes):
    return replaced(SOFTMAX, *changes.values())


def exp_that(statement):
    """The library's exp kernel, whose wrapper begins with a statement."""
    head, body = EXP.split("def wrapper(", 1)
    signature, body = body.split("\n", 1)
    return f"{head}def wrapper({signature}\n    {statement}\n{body}"


def write(directory, **files):
    """A layer of kernel files."""
    for name, source in files.items():
        path = directory / "group" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return directory


def verdict_of(judge, library, source, overload="aten::_softmax", self_consistent=True, **arguments):
    arguments = arguments or {"self": X, "dim": 1, "half_to_float": False}
    kernel = packaged().parse(source, Path("group/candidate.py"))
    match = library.with_candidate(kernel, self_consistent).match(overload)
    case = case_of_values(overload, **arguments)
    return judge.judge([Job(match.plan, match.kernel, (case,), match.copy, repeats=1)])[overload, case.id]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(without(["aten::cosh"], tmp_path_factory.mktemp("library") / "kernels"))


def test_what_a_file_calls():
    assert packaged().parse(SOFTMAX, Path("x.py")).calls == CALLS
    assert packaged().parse(EXP, Path("x.py")).calls == ()


def test_a_wrapper_of_verified_kernels_passes_every_layer(judge, library):
    verdict = verdict_of(judge, library, SOFTMAX)
    assert verdict.outcome is Outcome.PASS, verdict


def test_without_the_switch_it_is_cheating(judge, library):
    verdict = verdict_of(judge, library, SOFTMAX, self_consistent=False)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "dispatch")
    assert all(name in verdict.detail for name in CALLS)


def test_the_library_answers_and_not_aten(judge, tmp_path):
    wrong = EXP.replace("tl.exp(", "2.0 + tl.exp(")
    assert wrong != EXP
    library = Library(write(tmp_path, exp=wrong), KERNELS)
    verdict = verdict_of(judge, library, SOFTMAX)
    assert (verdict.outcome, verdict.layer) == (Outcome.WRONG, "compare")


@pytest.mark.parametrize(
    "call, named",
    [
        ("torch.ops.aten.cosh.default(self)", "aten::cosh"),  # not in the library
        ("torch.exp(self)", "aten::exp"),  # in it, and asked of ATen
        ("torch.ops.aten.exp(self)", "aten::exp"),  # says no overload, so that nothing serves it
        ("getattr(torch.ops.aten, 'exp').default(self)", "aten::exp"),
        ("torch.ops.aten.exp_.default(torch.ops.aten.mul.Scalar(self, 1))", "aten::exp_"),
        ("torch.ops.aten.softmax.int(self, dim)", "aten::_softmax"),  # made of the operator itself
    ],
)
def test_anything_else_is_cheating(judge, library, call, named):
    source = softmax(exp=("torch.ops.aten.exp.default(self)", call))
    verdict = verdict_of(judge, library, source)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "dispatch"), verdict
    assert f"called {named}" in verdict.detail or f", {named}" in verdict.detail


def test_what_is_derived_from_the_caller_is_cheating(judge, library):
    source = exp_that("return torch.ops.aten.exp_.default(torch.empty_like(self))")
    verdict = verdict_of(judge, library, source, "aten::exp", self=X)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "dispatch")
    assert "aten::exp_" in verdict.detail


def test_a_callee_may_not_use_what_its_caller_may(judge, tmp_path):
    """exp has no call of `sum` in its text, and reaches for it while its caller, which has, runs."""
    source = exp_that("getattr(torch.ops.aten, 'sum').dim_IntList(self, [0], False)")
    verdict = verdict_of(judge, Library(write(tmp_path, exp=source), KERNELS), SOFTMAX)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "dispatch")
    assert "aten::sum.dim_IntList" in verdict.detail


def test_a_callee_is_watched_like_its_caller(judge, tmp_path):
    source = exp_that("torch.exp(self)")
    verdict = verdict_of(judge, Library(write(tmp_path, exp=source), KERNELS), SOFTMAX)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "dispatch")


def test_callees_that_do_not_compile_are_told(judge, tmp_path):
    source = EXP.replace("tl.exp(", "tl.no_such_function(")
    verdict = verdict_of(judge, Library(write(tmp_path, exp=source), KERNELS), SOFTMAX)
    assert verdict.outcome is Outcome.COMPILE_ERROR


def test_verdicts_are_keyed_by_every_kernel_that_is_reached(library, tmp_path):
    def kernels(library):
        match = library.match("aten::_softmax")
        return Job(match.plan, match.kernel, (), match.copy).kernels

    layer = write(tmp_path / "one", softmax=SOFTMAX)
    found = kernels(Library(layer, KERNELS))
    assert found[2:] == tuple(f"{o}={library.kernel(o).key}" for o in CALLS)
    changed = kernels(Library(write(tmp_path / "two", exp=EXP.replace("tl.exp(", "tl.exp2(")), layer, KERNELS))
    assert found[:2] == changed[:2] and set(found[2:]) != set(changed[2:])


def test_kernels_without_calls_are_keyed_as_ever(library):
    match = library.match("aten::exp_")
    assert Job(match.plan, match.kernel, (), match.copy).kernels == ("aten::exp", match.kernel.key)


@pytest.mark.parametrize(
    "files, names",
    [
        ({"exp": "return torch.ops.aten.exp.default(self)"}, ["aten::exp calls aten::exp"]),
        (
            {"softmax": SOFTMAX, "exp": "return torch.ops.aten._softmax.default(self, 0, False)"},
            ["aten::_softmax", "aten::exp"],
        ),
    ],
    ids=["itself", "two"],
)
def test_a_cycle_is_refused_with_its_names(tmp_path, files, names):
    files = {name: text if text is SOFTMAX else exp_that(text) for name, text in files.items()}
    with pytest.raises(UserError) as error:
        Library(write(tmp_path, **files), KERNELS)
    assert all(name in str(error.value) for name in names) and "\n" not in str(error.value)


def test_a_candidate_that_would_close_a_cycle_is_refused(tmp_path):
    library = Library(write(tmp_path, softmax=SOFTMAX), KERNELS)
    source = exp_that("return torch.ops.aten._softmax.default(self, 0, False)")
    candidate = packaged().parse(source, Path("x.py"))
    with pytest.raises(UserError, match="aten::exp"):
        library.with_candidate(candidate, self_consistent=True)
    assert library.with_candidate(candidate).kernel("aten::exp") is candidate  # which then is CHEAT


def violations(source, calls=CALLS):
    return lint(source, load_profile("triton").with_blocks(BLOCKS).with_calls(calls))


def test_lint_admits_these_names_and_only_under_the_switch():
    assert violations(SOFTMAX) == []
    rules = {v.rule for v in lint(SOFTMAX, load_profile("triton").with_blocks(BLOCKS))}
    assert {"name", "no-kernel"} <= rules


@pytest.mark.parametrize(
    "call, rule, words",
    [
        ("torch.ops.aten.cosh.default(self)", "library-call", ["aten.cosh.default", "kernel"]),
        ("torch.ops.aten.exp(self)", "library-call", ["write torch.ops.aten.exp.default(...)"]),
        ("torch.ops.aten.exp.out(self, out=self)", "library-call", ["write torch.ops.aten.exp.default(...)"]),
        ("torch.exp(self)", "name", ["torch.exp"]),
        ("self.exp()", "attribute", [".exp"]),
        ("torch.ops.prims.exp.default(self)", "name", ["torch.ops.prims"]),
        ("torch.ops.aten.exp.default", "name", ["torch.ops"]),
    ],
)
def test_lint_says_what_to_write_instead(call, rule, words):
    source = softmax(exp=("torch.ops.aten.exp.default(self)", call))
    found = [v for v in violations(source) if v.rule == rule]
    assert found, violations(source)
    assert all(word in " ".join(map(str, found)) for word in words)


def test_lint_knows_that_the_results_are_tensors():
    source = softmax(div=("return torch.ops.aten.div.Tensor(e, ", "return e / ("))
    assert [v.rule for v in violations(source)] == ["tensor-operator"]


def test_lint_refuses_another_name_for_an_operator():
    source = softmax(
        exp=("e = torch.ops.aten.exp.default(self)", "f = torch.ops.aten.exp.default\n    e = f(self)"),
    )
    assert violations(source)


def test_lint_wants_a_kernel_of_who_calls_nothing():
    source = softmax(
        one=("    e = torch.ops.aten.exp.default(self)\n", ""),
        two=(SOFTMAX[SOFTMAX.index("    return torch") :], "    return torch.empty_like(self)\n"),
    )
    assert "no-kernel" in {v.rule for v in violations(source)}
