"""Judge one case of one job: compare the answers of its children with ATen's."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, replace
from typing import Any

from traces import TraceError
from traces.contents import NotRecorded
from traces.overloads import bind, resolve
from traces.values import Packed, unpack
from verify.cases.case import Case, Expected
from verify.cases.kinds import kind_of
from verify.cases.packed import holds_sparse, unsupported
from verify.child.compiler_log import headline
from verify.comparison.compare import compare, error_ratio, telling
from verify.comparison.ghost import conjured
from verify.comparison.laws import law_of
from verify.comparison.open_writes import leaves_open
from verify.contract.kernel_file import SPARSE
from verify.contract.random_state import Philox
from verify.excerpts import anonymous
from verify.judging.asking import Children
from verify.judging.costs import too_costly
from verify.judging.job import RUN, Job
from verify.judging.problems import (
    Ended,
    Problem,
    access_reports,
    first_line,
    launched_otherwise,
    mismatched,
    side_effects,
)
from verify.judging.random_judging import Pairs, examine
from verify.judging.repeats import Repeats, configured
from verify.judging.reply import MalformedReply, Reply
from verify.judging.reports import inputs_report
from verify.judging.rerun import RERUN, is_rerun, rerun
from verify.outcome import Outcome, Verdict
from verify.platforms import COMPILE, EXECUTE, Platform
from verify.sandbox.children import ChildDied

MAX_READ = 8  # numbers that a wrapper may read back in one call


@dataclass(frozen=True)
class Begun:
    """State of a case before it runs.

    Attributes:
        skip: Reason to skip the case; empty if it runs.
        expected: ATen's answer, if the case runs.
        compiled: Reply from the compiling child and the wrapper's result there, or the error that ended it.
    """

    skip: str = ""
    expected: Expected | None = None
    compiled: tuple[Reply, Packed | None] | ChildDied | MalformedReply | None = None


@dataclass(frozen=True)
class JudgedCase:
    """Verdict on one case.

    Attributes:
        verdict: The verdict.
        lasts: True if the verdict is a permanent fact about the kernel. It is False if a busy machine may be the
            cause, or if the case was not run.
        answered: ATen's answer and the kernel's, if there was one.
    """

    verdict: Verdict
    lasts: bool = True
    answered: tuple[Expected, Packed] | None = None


class CaseRun:
    """Judge for one case, which uses the children of its job."""

    def __init__(self, job: Job, platform: Platform, children: Children, case: Case) -> None:
        self._job, self._platform, self._children, self._case = job, platform, children, case
        self._mode = platform.mode
        self._pairs = pairs_of(job, case)
        self._flaky = False  # True if a failure may be due to a busy machine
        self._accuracy = self._variants = self._reached = ""
        self._printed = ""  # output of the wrapper, with a headline
        self._any_stays = False  # True if any of several values stored to one place may remain
        self._asked = Packed({})  # arguments of the latest request
        self._answered: tuple[Expected, Packed] | None = None

    def judge(self, begun: Begun) -> JudgedCase:
        """Execute and compare; raise TraceError for a damaged trace."""
        verdict = self._judge(begun)
        full = os.strerror(errno.ENOSPC) in verdict.report  # children share a disk
        lasts = verdict.outcome is not Outcome.SKIPPED and not self._flaky and not full
        return JudgedCase(verdict, lasts, self._answered)

    def _judge(self, begun: Begun) -> Verdict:
        case = self._case
        if case.refused and not begun.skip:
            return self._judge_refused(case)
        if begun.expected is None:
            return skipped(case, begun.skip)
        expected = begun.expected
        self._asked, self._any_stays = expected.before, leaves_open(expected)
        try:
            problem = self._problem(begun, expected, case)
        except Ended as ended:
            problem = ended.problem
        except ChildDied as death:
            self._flaky = not death.keep
            outcome, layer = (Outcome.TIMEOUT, "time") if death.timeout else (Outcome.CRASH, "crash")
            problem = Problem(outcome, layer, death.how)
        except (TraceError, MalformedReply) as error:
            problem = Problem(Outcome.WRONG, "wire", f"the answer is malformed: {error}")
        if problem is None:
            passed = Verdict(
                case.id, Outcome.PASS, self._accuracy, self._printed, variants=self._variants, reached=self._reached
            )
            return _described(passed, case, expected.before)
        arguments = inputs_report(self._asked, changed=self._asked is not expected.before)
        arguments = "\n\n".join(filter(None, [arguments, self._printed]))
        return _described(_verdict(case, problem, arguments), case, expected.before)

    def _judge_refused(self, case: Case) -> Verdict:
        """Judge a call that ATen refuses: its answer is ignored, but it must not access memory outside the call."""
        before = self._asked = case.load()
        missing = unlisted(self._job, before)
        no_pass = skipped(case, missing or f"ATen refuses it: {case.refused}")
        if missing or self._mode != EXECUTE:
            return no_pass
        try:
            executed, _ = self._ask(self._mode, before, self._configured(0, seed=0))
        except ChildDied as death:
            self._flaky = not death.keep
            return skipped(case, death.how)
        problem = self._first(*(p for p in side_effects(executed) if p.layer == "access"))
        if problem is None:
            return no_pass
        prefix = f"a call that ATen refuses ({case.refused}):"
        explained = replace(
            problem, detail=f"{prefix} {problem.detail}", report=f"{prefix}\n{problem.report or problem.detail}"
        )
        return _described(_verdict(case, explained, inputs_report(before)), case, before)

    def _problem(self, begun: Begun, expected: Expected, case: Case) -> Problem | None:
        """Return the kernel's problem on this case, or None.

        Raises:
            Ended: A problem was found in a nested step.
            ChildDied: The child gave no answer in time, or it ended.
            MalformedReply: The reply is invalid.
            TraceError: The result is inconsistent.
        """
        assert begun.compiled is not None
        if isinstance(begun.compiled, Exception):
            raise begun.compiled
        _check_lost(begun.compiled[0])
        compiled, problem = self._compiled(expected, *begun.compiled)
        if problem is not None:
            return problem
        if RUN in self._job.off:
            return None
        executed, got = self._ask(self._mode, expected.before, self._configured(0, seed=0))
        self._reached = executed.reached
        if executed.scalars and len(executed.scalars) <= MAX_READ:
            request = self._configured(0, scalars=list(executed.scalars))
            compiled, problem = self._compiled(expected, *self._ask(COMPILE, expected.before, request))
        problem = problem or self._first(self._conduct(executed))
        if problem is None and got is None:
            text = "\n".join([executed.text, *access_reports(executed)])
            return Problem(Outcome.RUNTIME_ERROR, "run", first_line(executed.text), text)
        problem = problem or self._first(*self._launches(compiled, executed, expected))
        if problem is not None or got is None:
            return problem
        self._answered = expected, got
        mismatch = compare(self._job.plan.overload, expected, got, self._job.strict)
        wrong = mismatch and mismatched(mismatch, executed)
        costs = too_costly(self._job.plan.overload, expected, got, executed)
        problem = self._first(wrong or None, *side_effects(executed, self._any_stays), *costs)
        if problem is not None:
            return problem
        ratio = error_ratio(expected, got) if mismatch is None else None
        self._accuracy = "" if ratio is None else f"largest error {ratio:.2g} of ATen's own"
        if law_of(expected.overload) and "draws" not in self._job.off:
            problem = self._drawn(expected, got, case.draws)
        if problem is not None:
            return problem
        if is_rerun(self._job, case.id) and self._mode == EXECUTE:
            problem = self._rerun(expected, executed)
        if problem is not None:
            return problem
        if "repeat" in self._job.off:
            return None
        repeats = Repeats(self._job, self._mode, self._case.id, self._pairs[0], self._once_more)
        if case.id in self._job.repeated:
            return repeats.again(expected, got, executed.configurations, far=case.made)
        return repeats.special(expected, executed.configurations)

    def _first(self, *problems: Problem | None) -> Problem | None:
        """Return the first problem in a layer that is switched on."""
        return next((p for p in problems if p is not None and p.layer not in self._job.off), None)

    def _compiled(self, expected: Expected, compiled: Reply, ghost: Packed | None) -> tuple[Reply, Problem | None]:
        """Return the problems found by compilation.

        The wrapper's result must not be right already, since no kernel ran.
        """
        self._variants = ",".join(compiled.variants)
        outside = refused = elsewhere = None
        met = next((text for mark, text in self._job.marks if mark in compiled.met), None)
        if met is not None:
            outside = Problem(Outcome.COMPILE_ERROR, "lint", met, rule="dialect")
        if compiled.refused:
            refused = Problem(Outcome.COMPILE_ERROR, "compile", headline(compiled.refused), compiled.refused)
        text = conjured(self._job.plan.overload, expected, ghost) if ghost is not None else None
        if text is not None:
            elsewhere = Problem(Outcome.CHEAT, "ghost", text)
        return compiled, self._first(outside, refused, self._conduct(compiled), elsewhere)

    def _conduct(self, reply: Reply) -> Problem | None:
        """Return a problem if the wrapper or a launch called ATen operators that are not allowed."""
        forbidden = [name for name in dict.fromkeys(reply.operators) if name not in self._job.allowed]
        if forbidden:
            served = "".join(f", {overload}" for overload, _ in self._job.kernel.callees)
            allowed = "allocation and views" + (", fills and copies of whole tensors" if self._job.allowed else "")
            text = f"the wrapper called {', '.join(forbidden)}; only {allowed}{served} are allowed"
            return Problem(Outcome.CHEAT, "dispatch", text, rule="wrapper")
        if reply.launch_operators:
            names = ", ".join(dict.fromkeys(reply.launch_operators))
            return Problem(Outcome.CHEAT, "dispatch", f"a kernel called {names} while it was launched", rule="launch")
        if len(reply.scalars) > MAX_READ or any(isinstance(value, float) for value in reply.scalars):
            text = f"the wrapper read {len(reply.scalars)} numbers back; a few integers are allowed, such as a size"
            return Problem(Outcome.CHEAT, "dispatch", text, rule="item")
        return None

    def _launches(self, compiled: Reply, executed: Reply, expected: Expected) -> list[Problem]:
        problems = []
        uncompiled = sorted(set(executed.kernels) - set(compiled.kernels))
        if uncompiled:
            reason = f" ({first_line(compiled.text)})" if compiled.text else ""
            text = f"{', '.join(uncompiled)} was not reached when kernels only compile{reason}"
            problems.append(Problem(Outcome.COMPILE_ERROR, "compile", text))
        elif (compiled.status, compiled.digest) != (executed.status, executed.digest) and not compiled.refused:
            problems.append(launched_otherwise(compiled, executed))
        if not executed.kernels and telling(self._job.plan.overload, expected):
            problems.append(Problem(Outcome.CHEAT, "launch", "no kernel was launched"))
        return problems

    def _rerun(self, expected: Expected, executed: Reply) -> Problem | None:
        """Return a problem if the launches alone do not produce the answer."""

        def ask_compiled(packed: Packed, request: dict[str, Any]) -> tuple[Reply, Packed | None]:
            return self._ask(COMPILE, packed, self._configured(0, scalars=list(executed.scalars), **request))

        def alone(packed: Packed, request: dict[str, Any]) -> tuple[Reply, Packed | None]:
            return self._ask(RERUN, packed, request)

        return self._first(*rerun(self._job, self._platform, expected, ask_compiled, alone, self._conduct))

    def _drawn(self, expected: Expected, got: Packed, draws: int) -> Problem | None:
        """Return a problem in the draws of an otherwise correct answer; raise Ended for any other problem."""

        def ask(philox: Philox, order: int) -> Packed:
            request = {"seed": order, "philox": philox}
            answer = self._once_more(expected.before, request, f"with philox={philox}", ("draws", "reproducible"))
            mismatch = compare(self._job.plan.overload, expected, answer, self._job.strict)
            if mismatch is not None:
                raise Ended(Problem(Outcome.WRONG, "compare", mismatch.detail, mismatch.report))
            return answer

        anomaly = examine(expected, got, self._pairs, ask, draws)
        if anomaly is None:
            return None
        return Problem(Outcome.WRONG, "draws", anomaly.detail, f"{anomaly.detail}\n{anomaly.advice}", anomaly.rule)

    def _configured(self, number: int, **request: Any) -> dict[str, Any]:
        return configured(self._case.id, number, **request)

    def _once_more(self, packed: Packed, request: dict[str, Any], how: str, rule: tuple[str, str]) -> Packed:
        """Return the answer to another request; raise Ended with the problem, or with `rule` of a layer if it fails."""
        executed, answer = self._ask(self._mode, packed, request)
        problem = self._first(self._conduct(executed), *side_effects(executed, self._any_stays))
        if problem is None and answer is not None:
            return answer
        if problem is not None:
            detail = f"{problem.detail} ({how})"
            report = (problem.report or problem.detail).replace(problem.detail, detail)
            raise Ended(replace(problem, detail=detail, report=report))
        text = f"it fails {how}: {first_line(executed.text)}"
        report = f"it fails {how}:\n{executed.text}"
        raise Ended(Problem(Outcome.WRONG, rule[0], text, report, rule[1]))

    def _ask(self, mode: str, packed: Packed, request: dict[str, Any]) -> tuple[Reply, Packed | None]:
        """Send a request for the judged case, as Children.ask does."""
        self._asked = packed
        reply, answer = self._children.ask(mode, packed, drawing(self._job, request, self._pairs[0]))
        if reply.printed and mode != COMPILE:
            self._printed = f"The wrapper printed:\n{anonymous(reply.printed).rstrip()}"
        _check_lost(reply)
        return reply, answer


def pairs_of(job: Job, case: Case) -> Pairs:
    """Return the keys and counters for a case, for a kernel that draws."""
    return Pairs(job.kernel.key, case.id)


def drawing(job: Job, request: dict[str, Any], philox: Philox) -> dict[str, Any]:
    """Return the request, with key and counter added if the kernel draws."""
    return {"philox": philox, **request} if job.kernel.draws else request


def _check_lost(reply: Reply) -> None:
    """Raise ChildDied if an error has made the child unusable."""
    if reply.lost:
        raise ChildDied(first_line(reply.text), keep=True)


def skipped(case: Case, why: str) -> Verdict:
    """Return the verdict for a case that is skipped."""
    verdict = Verdict(case.id, Outcome.SKIPPED, why)
    try:
        return _described(verdict, case, case.load())
    except NotRecorded:
        return verdict


def _described(verdict: Verdict, case: Case, packed: Packed) -> Verdict:
    """Return the verdict with dtypes, signature and kind of its case."""
    named = [*_floating_dtypes(packed), *([SPARSE] if holds_sparse(packed.tree) else [])]
    call = {} if unsupported(packed.tree) else bind(resolve(case.overload), (), unpack(packed))
    return replace(verdict, dtypes=",".join(named), signature=case.independence, kind=kind_of(call))


def _verdict(case: Case, problem: Problem, arguments: str) -> Verdict:
    text = f"{problem.report or problem.detail}\n\n{arguments}"
    return Verdict(case.id, problem.outcome, problem.detail[:300], text, problem.layer, problem.rule)


def unlisted(job: Job, packed: Packed) -> str:
    """Return a message with the dtypes or layouts of the case that the kernel does not list, or ''.

    Complex numbers count as a dtype. A real dtype that only appears as an argument does not excuse the kernel,
    because it must not overlook the argument. A bare file need not take complex numbers beside real tensors.
    """
    kernel = job.kernel
    listed = kernel.listed if job.strict else kernel.listed - {"complex"}
    tensor_dtypes = {ref.dtype for ref in packed.tensors}
    named = [dtype for dtype in _floating_dtypes(packed) if dtype in tensor_dtypes or "complex" in dtype]
    missing = [dtype for dtype in named if dtype not in listed]
    if missing:
        return f"the kernel's DTYPES do not list {', '.join(missing)}"
    sparse = holds_sparse(packed.tree) and SPARSE not in kernel.listed
    return f"the kernel's LAYOUTS do not list {SPARSE}" if sparse else ""


def _floating_dtypes(packed: Packed) -> list[str]:
    """Return the floating and complex dtypes among tensors and dtype arguments, and `complex` for a complex number."""
    values = [value for value in packed.tree.values() if isinstance(value, dict)]
    named = {value["dtype"] for value in values if "dtype" in value} | {ref.dtype for ref in packed.tensors}
    named |= {"complex" for value in values if "complex" in value}
    return sorted(dtype for dtype in named if "float" in dtype or "complex" in dtype)
