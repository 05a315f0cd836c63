"""`enable verify`: judge one kernel on cases of several sources, and say what spoke against it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from enable.cover.bare import beyond, in_other_dtypes, refused_dtypes
from enable.cover.coverage import cases_by_overload
from enable.cover.finding import Finding
from enable.cover.recorded import recorded, some
from enable.cover.sanitizing import under_sanitizer
from enable.fusions import fused_cases
from enable.progress import doing
from enable.workspace import Workspace
from traces import UserError
from verify.cases.case import Case
from verify.cases.extended import extended
from verify.cases.opinfo import kept_cases
from verify.cases.refused import refused
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.candidate import Candidate
from verify.judging.job import REPEATS, RUN
from verify.judging.judge import Job, Judge
from verify.judging.random_judging import exhaustive
from verify.judging.unreached import unreached
from verify.lint import Profile
from verify.lint.gravity import gravest
from verify.outcome import LAYERS, OPTIONAL, Outcome, Verdict
from verify.platforms import EXECUTE

_COPIES = frozenset({"aten::clone", "aten::copy_"})  # `contiguous` makes them; ghost replay sees them
SOURCES = ("opinfo", "extended", "traces")  # of cases, if none are named; trace:NAME is another
MAX_EXTENDED = 128  # cases of each overload and kernel
MAX_RECORDED = 64  # of the workspace's traces, likewise
MAX_GIVEN = 120  # OpInfo's cases of each overload of a bare file
SEARCHES = 3  # times that more cases are made for what no case reached
SEARCHED = 128  # of an overload, the first time
GIVEN = ("float32",), ("int64", "int32"), ("bool",)  # dtypes of a bare file's cases: the first that its operator takes

_PREPARING = threading.Lock()


@dataclass(frozen=True)
class VerifyRequest:
    """How to judge. off: layers that are not asked. case: judge this one alone. first: stop at the first that fails.
    limit: extended cases of each overload. every: the whole library is judged, so that traces are read once for all.
    sanitize: run some of the cases that passed again, under compute-sanitizer.
    """

    sources: tuple[str, ...] = SOURCES
    seed: int = 0
    off: frozenset[str] = frozenset()
    case: str | None = None
    first: bool = True
    limit: int = MAX_EXTENDED
    every: bool = False
    sanitize: bool = False

    @property
    def full(self) -> bool:
        """Whether what is known of other cases, with every layer asked, belongs to the answer."""
        return not self.off - {"lint"} and self.case is None


def check_request(sources: Sequence[str], off: Sequence[str]) -> None:
    """Raises UserError for a source of cases or a layer that does not exist."""
    for source in sources:
        if source not in SOURCES and not source.startswith("trace:"):
            raise UserError(f"unknown cases {source!r}; choose from {', '.join(SOURCES)}, trace:NAME")
    for layer in off:
        if layer not in OPTIONAL:
            what = "cannot be left out" if layer in LAYERS else "is not a layer"
            raise UserError(f"{layer!r} {what}; choose from {', '.join(OPTIONAL)}")


def verify_candidate(
    candidate: Candidate, request: VerifyRequest, judge: Judge, profile: Profile, workspace: Workspace
) -> Finding:
    """Lint, then judge every case. Raises UserError for a trace that is not there."""
    common: dict[str, Any] = {"seed": request.seed, "sandbox": judge.sandbox, "overloads": candidate.overloads}
    common["compile_only"] = RUN in request.off
    found = Finding(candidate.name, Outcome.SKIPPED, **common)
    if candidate.violations and ("lint" not in request.off or candidate.kernel is None):
        first, cheats = gravest(candidate.violations)
        outcome = Outcome.CHEAT if cheats and candidate.kernel is not None else Outcome.COMPILE_ERROR
        lines = tuple(map(str, candidate.violations))
        return replace(found, outcome=outcome, layer="lint", rule=first.rule, detail=str(first), violations=lines)
    assert candidate.kernel is not None
    if RUN in request.off and not judge.platform.targets:
        raise UserError(
            f"platform {judge.platform.name} names no target to compile for; choose another, or run the kernels"
        )
    with doing(f"verify {candidate.name}: preparing cases") as work:
        with _PREPARING:
            narrow = _no_floats(candidate, candidate.kernel, workspace.cache)
            if narrow:
                outcome = Outcome.COMPILE_ERROR
                return replace(found, outcome=outcome, layer="lint", rule="dtypes", detail=narrow, violations=(narrow,))
            chosen = _cases(candidate, candidate.kernel, request, workspace)
            samples = workspace.cache if "opinfo" in request.sources and request.case is None else None
            others = in_other_dtypes(candidate, chosen, samples)

        job = partial(_job, candidate, request, profile)
        jobs = [job(overload, cases) for overload, cases in chosen.items()]
        failed: list[Verdict] = []  # of these jobs
        needed = (lambda job, case: not failed) if request.first else None
        tried = [replace(job(overload, cases), needed=needed) for (overload, _), cases in others.items()]
        count = sum(len(job.cases) for job in (*jobs, *tried))
        work.count(f"verify {candidate.name}", count, "starting children")

        def judged(jobs: Sequence[Job]) -> dict[tuple[str, str], Verdict]:
            return judge.judge(jobs, told)

        def told(job: Job, verdict: Verdict) -> None:
            work.step(job.plan.overload)
            if job.needed is None and verdict.failed:
                failed.append(verdict)

        verdicts = judged([*jobs, *tried])

        def searched(cases: Mapping[str, list[Case]]) -> dict[tuple[str, str], Verdict]:
            work.count(f"verify {candidate.name}: what never ran", sum(map(len, cases.values())), "judging")
            return judged([job(overload, several) for overload, several in cases.items()])

        missing = _search(candidate, request, judge, chosen, verdicts, searched)
        summary = _concluded(found, chosen, others, verdicts, missing)
        if summary.outcome is Outcome.PASS and request.full and judge.platform.mode == EXECUTE:
            summary = _where_aten_refuses(summary, candidate, job, chosen, judged)
        if summary.outcome is Outcome.PASS and request.sanitize:
            jobs_now = [job(overload, cases) for overload, cases in chosen.items()]
            summary = under_sanitizer(summary, jobs_now, verdicts, judge.platform, judge.confinement)
    if candidate.contract and request.full:
        summary = _with_known(summary, jobs, judge)
    if RUN in request.off and summary.outcome is Outcome.PASS:
        targets = ", ".join(f"{t.backend}:{t.arch}" for t in judge.platform.targets)
        return replace(summary, detail=f"compiles for {targets}")
    return summary


def _job(candidate: Candidate, request: VerifyRequest, profile: Profile, overload: str, cases: Sequence[Case]) -> Job:
    assert candidate.kernel is not None
    return Job(
        candidate.plan or Plan(overload, overload),
        candidate.kernel,
        tuple(cases),
        candidate.copy,
        allowed=frozenset() if candidate.contract else profile.wrapper_operators - ({overload} - _COPIES),
        strict=candidate.contract,
        repeats=REPEATS,
        off=request.off,
        first=request.first,
    )


def _concluded(
    found: Finding,
    chosen: Mapping[str, list[Case]],
    others: Mapping[tuple[str, str], list[Case]],
    verdicts: Mapping[tuple[str, str], Verdict],
    missing: tuple[str, ...],
) -> Finding:
    """What the verdicts on the chosen cases and on those of other dtypes come to. missing: what none reached."""
    refused = refused_dtypes(others, chosen, verdicts)
    order = [(overload, case.id) for overload, cases in chosen.items() for case in cases]
    told = [verdicts[key] for key in order if key in verdicts]
    if len(told) < len(order) and all(v.outcome in (Outcome.PASS, Outcome.SKIPPED) for v in told):
        raise RuntimeError(f"{len(order) - len(told)} of {len(order)} cases have no verdict")
    summary = _summary(found, told)
    if summary.outcome is Outcome.PASS:
        detail = "; ".join([f"{summary.detail}{_told_of(chosen, verdicts)}", *missing])
        return replace(summary, detail=detail, narrower=refused, unreached=missing)
    return summary


def _where_aten_refuses(
    found: Finding,
    candidate: Candidate,
    job: Callable[[str, Sequence[Case]], Job],
    chosen: Mapping[str, list[Case]],
    judged: Callable[[Sequence[Job]], Mapping[Any, Verdict]],
) -> Finding:
    """The same with what the kernel does to memory that is none of a call's, where ATen refuses that call: wrong of a
    kernel file, and told of a bare one."""
    with _PREPARING:
        jobs = [job(o, _refused(cases)) for o, cases in chosen.items()]
    failed = next((v for v in judged(jobs).values() if v.failed), None)
    if failed is None:
        return found
    if not candidate.contract:
        return replace(found, narrower={**found.narrower, "calls that ATen refuses": failed.detail})
    return replace(_summary(found, [failed]), cases=found.cases, passed=found.passed, skipped=found.skipped)


def _refused(cases: Sequence[Case]) -> list[Case]:
    return refused([case for case in cases if not case.made])


def _search(
    candidate: Candidate,
    request: VerifyRequest,
    judge: Judge,
    chosen: dict[str, list[Case]],
    verdicts: dict[tuple[str, str], Verdict],
    judged: Callable[[Mapping[str, list[Case]]], Mapping[tuple[str, str], Verdict]],
) -> tuple[str, ...]:
    """What no case reached of the file, after more cases were made for it, which are added to the ones there are."""
    assert candidate.kernel is not None
    missing = _missing(candidate.kernel, verdicts, request, judge)
    for turn in range(SEARCHES if missing else 0):
        more = _searched(chosen, candidate, request, turn)
        verdicts |= judged(more)
        for overload, cases in more.items():
            chosen[overload] += [case for case in cases if (overload, case.id) in verdicts]
        missing = _missing(candidate.kernel, verdicts, request, judge)
        if not missing:
            break
    return missing


def _missing(
    kernel: KernelFile, verdicts: Mapping[Any, Verdict], request: VerifyRequest, judge: Judge
) -> tuple[str, ...]:
    """What of the file no case reached, if all passed, and they were all there are, where that is known."""
    passed = all(v.outcome in (Outcome.PASS, Outcome.SKIPPED) for v in verdicts.values())
    if not (passed and request.full and judge.platform.mode == EXECUTE and any(v.reached for v in verdicts.values())):
        return ()
    return unreached(kernel, (v.reached for v in verdicts.values()))


def _searched(
    chosen: Mapping[str, list[Case]], candidate: Candidate, request: VerifyRequest, turn: int
) -> dict[str, list[Case]]:
    """More cases of each overload, twice as many each turn, none of which a bare file may refuse."""
    found: dict[str, list[Case]] = {}
    more = min(SEARCHED, request.limit) << turn
    for overload, cases in chosen.items() if "extended" in request.sources else ():
        known = {case.id for case in cases}
        given = [case for case in cases if not case.made]
        with _PREPARING:
            made = extended(given, request.seed, candidate.source, len(cases) + more)
        found[overload] = [v.case for v in made if v.case.id not in known][:more]
    beyond(candidate, chosen, found)
    return found


def _told_of(chosen: Mapping[str, Sequence[Case]], verdicts: Mapping[tuple[str, str], Verdict]) -> str:
    """For which dtypes and ranks a pass holds: those of the tensors of the cases that passed."""
    passed = {key for key, verdict in verdicts.items() if verdict.outcome is Outcome.PASS}
    cases = [case for overload, several in chosen.items() for case in several if (overload, case.id) in passed]
    dtypes = sorted({dtype for case in cases for dtype in case.dtypes})
    ranks = sorted({len(shape) for case in cases for shape in case.shapes})
    if not dtypes:
        return ""
    rank = f"rank {ranks[0]}" if len(ranks) == 1 else f"rank {ranks[0]} to {ranks[-1]}"
    return f": {', '.join(dtypes)}, of {rank}"


def _no_floats(candidate: Candidate, kernel: KernelFile, cache: Path) -> str:
    """What is wrong with a claim of no floating dtype for an operator that takes them; empty if nothing is."""
    if not candidate.contract or any("float" in dtype or "complex" in dtype for dtype in kernel.dtypes):
        return ""
    taken = kept_cases(cache, list(candidate.overloads), ("float32",))
    if not taken:
        return ""
    what = f"DTYPES hold {', '.join(kernel.dtypes)} and no floating dtype, which {taken[0].overload} takes"
    return f'[dtypes] {what} instead: compute these, too, and write DTYPES = ("bfloat16", "float16", "float32")'


def _with_known(found: Finding, jobs: list[Job], judge: Judge) -> Finding:
    """The same with what is known of other cases: what failed one of them is no pass."""
    standings = [judge.standings(job.kernels)[job.kernels, job.plan.overload] for job in jobs]
    failed = next((v for s in standings for v in s.failed.values()), None)
    found = replace(found, independent=min((s.independent for s in standings), default=0))
    if failed is None or found.outcome not in (Outcome.PASS, Outcome.SKIPPED):
        return found
    detail = f"known from another case ({failed.case}): {failed.detail}"
    found = replace(found, layer=failed.layer, rule=failed.rule, report=failed.report)
    return replace(found, outcome=failed.outcome, detail=detail)


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
        none = "OpInfo has no sample of it, and no trace here a call; record one that has: enable capture MODEL"
        return replace(counts, detail=f"no case was run: {verdicts[0].detail if verdicts else none}")
    printed = next((v.report for v in passed if v.report), "")
    return replace(counts, outcome=Outcome.PASS, detail=f"{len(passed)} cases passed", report=printed)


def _cases(
    candidate: Candidate, kernel: KernelFile, request: VerifyRequest, workspace: Workspace
) -> dict[str, list[Case]]:
    """The cases of each overload, each once. For one thread at a time: samples come from the process's generator."""
    given = _opinfo(candidate, kernel.dtypes, workspace.cache) if "opinfo" in request.sources else []
    if "traces" in request.sources:
        given += _recorded(candidate, request, workspace)
    for source in request.sources:
        if source.startswith("trace:"):
            trace = workspace.open_trace(name := source.removeprefix("trace:"))
            recorded = {**cases_by_overload(trace), **fused_cases(workspace.fusions().values(), trace, name)}
            given += [case for overload in candidate.overloads for case in recorded.get(overload, [])]
    if not given and "extended" in request.sources and not {"opinfo", "traces"} & {*request.sources}:
        raise UserError("extended cases are made from others; add opinfo, traces or trace:NAME to --cases")
    found: dict[str, dict[str, Case]] = {}
    for case in given:
        found.setdefault(case.overload, {})[case.id] = case
    if "extended" in request.sources:
        for cases in found.values():
            made = extended(list(cases.values()), request.seed, candidate.source, request.limit)
            cases.update({v.case.id: v.case for v in made})
    chosen = {o: list(cases.values()) for o, cases in found.items()}
    if not request.first or request.case is not None:
        for several in chosen.values():
            several += exhaustive(several)
    if request.case is not None:
        others = ((o, _refused(cases)) for o, cases in chosen.items())
        named = (
            (o, [c for c in cases if c.id == request.case]) for o, cases in itertools.chain(chosen.items(), others)
        )
        chosen = dict(itertools.islice(((o, cases) for o, cases in named if cases), 1))
        if not chosen:
            raise UserError(f"no case {request.case}; it may be of another --seed, or of other --cases")
    return chosen


def _recorded(candidate: Candidate, request: VerifyRequest, workspace: Workspace) -> list[Case]:
    """Some cases of the workspace's traces, of each overload spread evenly; those of OpInfo after those of models."""
    found = recorded(workspace, None if request.every else frozenset(candidate.overloads))
    chosen: list[Case] = []
    for overload in candidate.overloads:
        of_models, of_opinfo = found.cases_of(overload)
        chosen += some(of_models, MAX_RECORDED)
        chosen += some(of_opinfo, MAX_RECORDED - min(len(of_models), MAX_RECORDED))
    return chosen


def _opinfo(candidate: Candidate, dtypes: tuple[str, ...], cache: Path) -> list[Case]:
    """OpInfo's cases; not all of them of a bare file, which names no dtypes."""
    overloads = list(candidate.overloads)
    if candidate.contract:
        return kept_cases(cache, overloads, dtypes)
    found = next(filter(None, (kept_cases(cache, overloads, kinds, every=False) for kinds in GIVEN)), [])
    by_overload = [[case for case in found if case.overload == o] for o in overloads]
    return [case for cases in by_overload for case in some(cases, MAX_GIVEN)]


def path_of(text: str) -> Path | None:
    """The path of a file that was named, or None if the word names an operator."""
    path = Path(text)
    return path if path.is_file() or path.suffix in (".py", ".md", ".txt") else None
