"""`enable verify`: judge one kernel on cases of several sources, and say what spoke against it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from enable.coverage import cases_by_overload
from enable.progress import doing
from enable.terminal import coloured
from enable.workspace import Workspace
from traces import UserError
from verify.candidate import Candidate
from verify.cases import Case
from verify.derive import Plan
from verify.extended import extended
from verify.judge import Job, Judge
from verify.kernel_file import KernelFile
from verify.lint import Profile
from verify.outcome import LAYERS, OPTIONAL, Outcome, Verdict
from verify.run import RUN
from verify.samples import opinfo_cases

_COPIES = frozenset({"aten::clone", "aten::copy_"})  # `contiguous` makes them; ghost replay sees them
SOURCES = ("opinfo", "extended")  # of cases, if none are named; trace:NAME is another
REPEATS = 3  # cases of each overload that are run again
MAX_EXTENDED = 64  # cases of each overload and kernel
MAX_GIVEN = 120  # OpInfo's cases of each overload of a bare file
INTEGERS = ("int64", "int32"), ("bool",)  # dtypes of the samples where the operator takes no floating ones


@dataclass(frozen=True)
class Request:
    """How to judge. off: layers that are not asked. case: judge this one alone. first: stop at the first that fails."""

    sources: tuple[str, ...] = SOURCES
    seed: int = 0
    off: frozenset[str] = frozenset()
    case: str | None = None
    first: bool = True
    limit: int = MAX_EXTENDED


@dataclass(frozen=True)
class Finding:
    """What is said of one kernel: PASS only if cases ran and all of them passed.

    cases: how many were judged. seed: of the extended ones. reproducer: the case that failed.
    """

    name: str
    outcome: Outcome
    layer: str = ""
    rule: str = ""
    detail: str = ""
    cases: int = 0
    passed: int = 0
    skipped: int = 0
    seed: int = 0
    sandbox: str = ""
    overloads: tuple[str, ...] = ()
    reproducer: str = ""
    report: str = ""
    violations: tuple[str, ...] = ()


def check_request(sources: Sequence[str], off: Sequence[str]) -> None:
    """Raises UserError for a source of cases or a layer that does not exist."""
    for source in sources:
        if source not in SOURCES and not source.startswith("trace:"):
            raise UserError(f"unknown cases {source!r}; choose from opinfo, extended, trace:NAME")
    for layer in off:
        if layer not in OPTIONAL:
            what = "cannot be left out" if layer in LAYERS else "is not a layer"
            raise UserError(f"{layer!r} {what}; choose from {', '.join(OPTIONAL)}")


def verify_candidate(
    candidate: Candidate, request: Request, judge: Judge, profile: Profile, workspace: Workspace
) -> Finding:
    """Lint, then judge every case. Raises UserError for a trace that is not there."""
    common: dict[str, Any] = {"seed": request.seed, "sandbox": judge.sandbox, "overloads": candidate.overloads}
    found = Finding(candidate.name, Outcome.SKIPPED, **common)
    if candidate.violations and ("lint" not in request.off or candidate.kernel is None):
        first = candidate.violations[0]
        outcome = Outcome.COMPILE_ERROR if candidate.no_program or candidate.kernel is None else Outcome.CHEAT
        lines = tuple(map(str, candidate.violations))
        return replace(found, outcome=outcome, layer="lint", rule=first.rule, detail=str(first), violations=lines)
    assert candidate.kernel is not None
    if RUN in request.off and not judge.platform.targets:
        raise UserError(
            f"platform {judge.platform.name} names no target to compile for; choose another, or run the kernels"
        )
    with doing(f"verify {candidate.name}: preparing cases") as work:
        jobs = [
            Job(
                Plan(overload, overload),
                candidate.kernel,
                tuple(cases),
                allowed=profile.wrapper_operators - ({overload} - _COPIES),
                strict=candidate.contract,
                repeats=REPEATS,
                off=request.off,
                first=request.first,
            )
            for overload, cases in _cases(candidate, candidate.kernel, request, workspace).items()
        ]
        work.count(f"verify {candidate.name}", sum(len(job.cases) for job in jobs), "starting children")
        verdicts = judge.judge(jobs, lambda job, verdict: work.step(job.plan.overload))
    order = [(job.plan.overload, case.id) for job in jobs for case in job.cases]
    told = [verdicts[key] for key in order if key in verdicts]
    if len(told) < len(order) and all(v.outcome in (Outcome.PASS, Outcome.SKIPPED) for v in told):
        raise RuntimeError(f"{len(order) - len(told)} of {len(order)} cases have no verdict")
    summary = _summary(found, told)
    if RUN in request.off and summary.outcome is Outcome.PASS:
        targets = ", ".join(f"{t.backend}:{t.arch}" for t in judge.platform.targets)
        return replace(summary, detail=f"{summary.passed} cases compile for {targets}; none was run")
    return summary


def _summary(found: Finding, verdicts: list[Verdict]) -> Finding:
    ran = [v for v in verdicts if v.outcome is not Outcome.SKIPPED]
    passed = [v for v in ran if v.outcome is Outcome.PASS]
    counts = replace(found, cases=len(ran), passed=len(passed), skipped=len(verdicts) - len(ran))
    failed = next((v for v in ran if v.outcome is not Outcome.PASS), None)
    if failed is not None:
        return replace(
            counts,
            outcome=failed.outcome,
            layer=failed.layer,
            rule=failed.rule,
            detail=failed.detail,
            reproducer=failed.case,
            report=failed.report,
        )
    if not ran:
        none = "OpInfo has no sample of it; record calls of it, and add trace:NAME to --cases"
        return replace(counts, detail=f"no case was run: {verdicts[0].detail if verdicts else none}")
    return replace(counts, outcome=Outcome.PASS, detail=f"{len(passed)} cases passed")


def _cases(candidate: Candidate, kernel: KernelFile, request: Request, workspace: Workspace) -> dict[str, list[Case]]:
    """The cases of each overload, each once."""
    given = _opinfo(candidate, kernel.dtypes) if "opinfo" in request.sources else []
    for source in request.sources:
        if source.startswith("trace:"):
            recorded = cases_by_overload(workspace.open_trace(source.removeprefix("trace:")))
            given += [case for overload in candidate.overloads for case in recorded.get(overload, [])]
    if not given and "extended" in request.sources and "opinfo" not in request.sources:
        raise UserError("extended cases are made from others; add opinfo or trace:NAME to --cases")
    found: dict[str, dict[str, Case]] = {}
    for case in given:
        found.setdefault(case.overload, {})[case.id] = case
    if "extended" in request.sources:
        for cases in found.values():
            made = extended(list(cases.values()), request.seed, candidate.source)[: request.limit]
            cases.update({v.case.id: v.case for v in made})
    chosen = {o: list(cases.values()) for o, cases in found.items()}
    if request.case is not None:
        chosen = {o: [c for c in cases if c.id == request.case] for o, cases in chosen.items()}
        chosen = {o: cases for o, cases in chosen.items() if cases}
        if not chosen:
            raise UserError(f"no case {request.case}; it may be of another --seed, or of other --cases")
    return chosen


def _opinfo(candidate: Candidate, dtypes: tuple[str, ...]) -> list[Case]:
    """OpInfo's cases. A bare file, which names no dtypes, gets integers for an operator of these, and not all cases."""
    overloads = list(candidate.overloads)
    if candidate.contract:
        return opinfo_cases(overloads, dtypes)
    found = next(filter(None, (opinfo_cases(overloads, kinds) for kinds in (dtypes, *INTEGERS))), [])
    by_overload = [[case for case in found if case.overload == o] for o in overloads]
    return [case for cases in by_overload for case in cases[:: max(1, -(-len(cases) // MAX_GIVEN))]]


def finding_lines(found: Finding, words: Sequence[str]) -> str:
    """What is told of one kernel. words: the command that was typed, to be typed again for the case that failed."""
    lines = [f"{found.name}: {coloured(found.outcome)}" + (f" [{found.layer}]" if found.layer else "")]
    if found.violations:
        lines += [f"  {line}" for line in found.violations]
    elif found.detail:
        lines.append(f"  {found.detail}")
    told = f"  {found.cases} cases run, {found.passed} passed, {found.skipped} skipped"
    lines.append(f"{told}; on {', '.join(found.overloads) or 'nothing'}; sandbox: {found.sandbox}")
    if found.reproducer:
        lines.append(f"  again  {shlex.join([*words, '--case', found.reproducer])}")
    return "\n".join(lines)


def path_of(text: str) -> Path | None:
    """The path of a file that was named, or None if the word names an operator."""
    path = Path(text)
    return path if path.is_file() or path.suffix in (".py", ".md", ".txt") else None
