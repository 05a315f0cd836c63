"""Run one trial for one kernel file: judge its stages in turn, and return one result.

Every command that decides if a kernel is right uses this module: `enable verify`, refinement, tuning, fusing and
`enable library add`. They provide their cases, such as recorded calls. The trial adds OpInfo's samples, variants
of all these cases, cases for lines that no case reached, and calls that ATen refuses; an exhaustive trial also adds
every value of small dtypes, long series of random draws, and variants of further seeds.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from traces import UserError
from traces.program import program_name
from verify.cases.case import Case, by_overload, has_reference, spread
from verify.cases.every_value import described, every_value
from verify.cases.extended import Variant, stream
from verify.cases.in_integers import in_integers
from verify.cases.opinfo import kept_cases
from verify.cases.refused import refused
from verify.judging.bare import beyond, in_floats, in_other_dtypes, in_usual_dtypes, refused_dtypes
from verify.judging.candidate import Candidate, without_floats
from verify.judging.dialect import judged, refused_whole
from verify.judging.job import REPEATS, RUN, Job
from verify.judging.judge import Judge
from verify.judging.random_judging import exhaustive
from verify.judging.stages import TrialOptions, TrialResult, TrialStage, Watcher
from verify.judging.unreached import unreached
from verify.lint import load_profile
from verify.lint.profile import DEFAULT
from verify.outcome import Outcome, Verdict
from verify.platforms import DEVICE, EXECUTE

MAX_BARE_SAMPLES = 120  # OpInfo samples per overload for a bare file, which names no dtypes
SEARCHES = 3  # searches for cases that reach the remaining lines
SEARCHED = 128  # cases of an overload that the first search makes; each search makes twice as many as the previous one
# Dtypes of samples for a bare file; the first group that its operator takes is used.
BARE_DTYPES = ("float32",), ("int64", "int32"), ("bool",)
# Names of stages that the trial adds.
SEARCH, REFUSED, VALUES, DRAWS = "search", "refused by ATen", "every value", "draws"

Key = tuple[str, str]  # overload and case id
_ID = re.compile("[0-9a-f]{32}")  # case id
_PREPARING = threading.Lock()  # samples and variants are drawn from the process-wide generator


class KernelTrial:
    """Trial of one candidate.

    Attributes:
        cases: Cases that count, by overload, in judging order.
        verdicts: Verdicts by overload and case id.
    """

    def __init__(
        self,
        candidate: Candidate,
        serve: Callable[[str], Job],
        judge: Judge,
        cache: Path,
        options: TrialOptions,
        watcher: Watcher | None = None,
    ) -> None:
        """Prepare a trial.

        Args:
            candidate: Kernel to judge.
            serve: Function that returns how an overload is served, as a job without cases.
            judge: The judge.
            cache: Directory with stored OpInfo samples.
            options: How far the trial goes.
            watcher: Progress callbacks.
        """
        self.cases: dict[str, list[Case]] = {}
        self.verdicts: dict[Key, Verdict] = {}
        self._candidate, self._serve, self._judge, self._cache = candidate, serve, judge, cache
        self._options = options
        self._watcher = watcher or Watcher()
        self._optional: dict[
            Key, list[Case]
        ] = {}  # cases on which a bare file may raise, by overload and dtype or rank
        self._bases: dict[str, list[Case]] = {}  # by overload, those from which variants are made
        self._variants: dict[str, Iterator[Variant]] = {}  # by overload, those that no stage has used yet

    def run(self, stages: Sequence[TrialStage]) -> TrialResult:
        """Judge the stages, the last one with samples and variants added, and then the further stages.

        The first stage that fails ends the trial. TraceError is raised for a damaged trace, and the judge's
        errors propagate.
        """
        candidate, options = self._candidate, self._options
        result = TrialResult(
            candidate.name,
            Outcome.SKIPPED,
            seed=options.seed,
            sandbox=self._judge.sandbox,
            overloads=candidate.overloads,
            compile_only=RUN in options.off,
        )
        if candidate.violations and ("lint" not in options.off or candidate.kernel is None) and not self._by_call():
            outcome, first = judged(candidate.violations, candidate.source, candidate.profile)
            outcome = outcome if candidate.kernel is not None else Outcome.COMPILE_ERROR
            lines = tuple(map(str, candidate.violations))
            return replace(result, outcome=outcome, layer="lint", rule=first.rule, detail=str(first), violations=lines)
        with _PREPARING:
            narrow = without_floats(candidate, self._cache) if options.samples and candidate.contract else ""
        if narrow:
            outcome = Outcome.COMPILE_ERROR
            return replace(result, outcome=outcome, layer="lint", rule="dtypes", detail=narrow, violations=(narrow,))
        for stage in stages[:-1]:
            self._judge_stage(stage.name, by_overload(stage.cases), stage.first)
            if self._failed():
                return self._concluded(result, stage.name)
            skipped = self._not_served(stage.cases) if stage.demanded else None
            if skipped is not None:
                return self._concluded(result, stage.name).failing(skipped, stage.name)
        result = self._last_stages(result, stages[-1])
        result = self._with_known(result) if candidate.contract and options.full else result
        kernel = candidate.kernel
        every = kernel is not None and candidate.contract and {*kernel.overloads} <= {*candidate.overloads}
        if kernel is not None and every and options.whole and result.outcome is Outcome.PASS:
            self._judge.keep_whole(kernel, result.detail)
        return result

    def _last_stages(self, result: TrialResult, stage: TrialStage) -> TrialResult:
        options, executes = self._options, self._judge.platform.mode == EXECUTE
        with _PREPARING:
            cases = self._with_made(stage.cases)
            cases = cases if options.case is None else self._only(options.case, cases)
        self._judge_stage(stage.name, cases, stage.first, self._optional)
        missing = self._search() if options.full and executes else ()
        result = self._concluded(result, stage.name, missing)
        if result.outcome is Outcome.PASS and options.full and executes:
            result = self._where_aten_refuses(result)
        if result.outcome is Outcome.PASS and options.case is None:
            result = self._exhaustive(result, missing)
            result = self._with_new_seeds(result) if result.outcome is Outcome.PASS else result
        return result

    def _exhaustive(self, result: TrialResult, missing: tuple[str, ...]) -> TrialResult:
        """Judge every value of small dtypes, and long series of draws, if the options ask for them."""
        options = self._options
        for name, make in ((VALUES, self._every_value),) * options.values + ((DRAWS, exhaustive),) * options.draws:
            with _PREPARING:
                made = {overload: make(cases) for overload, cases in self.cases.items()}
            self._judge_stage(name, made)
            result = self._concluded(result, name, missing)
            if result.outcome is not Outcome.PASS:
                return result
        passed = described(c for cases in self.cases.values() for c in cases if self._passed(c))
        return replace(result, detail=f"{result.detail}; {passed}") if passed else result

    def _passed(self, case: Case) -> bool:
        verdict = self.verdicts.get((case.overload, case.id))
        return verdict is not None and verdict.outcome is Outcome.PASS

    def _every_value(self, cases: Sequence[Case]) -> list[Case]:
        made = every_value(cases, self._options.seed, self._judge.platform.mode == DEVICE)
        return made if self._candidate.contract else in_floats(made)

    def _with_new_seeds(self, result: TrialResult) -> TrialResult:
        """Judge variants of one seed after the other until the time is over, or until one fails."""
        ends, seed, count = time.monotonic() + self._options.seconds, self._options.seed, 0
        known, verdicts = {o: list(cases) for o, cases in self.cases.items()}, dict(self.verdicts)
        while time.monotonic() < ends:
            with _PREPARING:
                fresh = self._of_seed(seed + 1)
            if not any(fresh.values()):
                break
            seed += 1
            self._judge_stage(f"seed {seed}", fresh)
            tried = self._concluded(result, f"seed {seed}")
            if tried.outcome is not Outcome.PASS:
                return replace(tried, seed=seed)
            count += sum(map(len, fresh.values()))
            # hours of cases would not fit in memory
            self.cases, self.verdicts = {o: list(cases) for o, cases in known.items()}, dict(verdicts)
        return replace(result, detail=f"{result.detail}; {count} further cases of seeds to {seed}") if count else result

    def _of_seed(self, seed: int) -> dict[str, list[Case]]:
        """Return the variants that another seed makes, without known cases and those that a bare file may refuse."""
        made: dict[str, list[Case]] = {}
        for overload, bases in self._bases.items():
            ids = {case.id for case in self.cases[overload]}
            variants = islice(stream(bases, seed, self._candidate.source), self._options.extended)
            made[overload] = [v.case for v in variants if v.case.id not in ids]
        if not self._candidate.contract:
            beyond(self.cases, made)
        return made

    def _judge_stage(
        self,
        name: str,
        cases: Mapping[str, Sequence[Case]],
        first: bool = True,
        optional: Mapping[Key, Sequence[Case]] | None = None,
    ) -> None:
        """Judge cases and store their verdicts; skip the cases in `optional` once one from `cases` has failed."""
        failed: list[Verdict] = []
        needed = (lambda job, case: not failed) if first else None
        jobs = [self.job(overload, some, first) for overload, some in cases.items() if some]
        also = [replace(self.job(o, some, first), needed=needed) for (o, _), some in (optional or {}).items()]

        def on_verdict(job: Job, verdict: Verdict) -> None:
            self._watcher.verdict(job.plan.overload)
            if job.needed is None and verdict.failed:
                failed.append(verdict)

        self._watcher.stage(name, sum(len(job.cases) for job in (*jobs, *also)))
        for job in jobs:
            self.cases.setdefault(job.plan.overload, []).extend(job.cases)
        self.verdicts |= self._judge.judge([*jobs, *also], on_verdict)

    def job(self, overload: str, cases: Sequence[Case], first: bool = True) -> Job:
        """Return the job that judges an overload's cases with this trial's options."""
        first, off = first and self._options.first, self._options.off
        job = replace(self._serve(overload), cases=tuple(cases), repeats=REPEATS, off=off, first=first)
        # the judge checks each call if the platform has its own dialect; otherwise the file was checked before
        return replace(job, dialect="" if self._of_platform else None)

    @property
    def _of_platform(self) -> bool:
        """Return True if the candidate is checked by a dialect of the platform's own."""
        candidate, dialect = self._candidate, self._judge.platform.lint
        return candidate.contract and dialect != DEFAULT and candidate.profile.name == load_profile(dialect).name

    def _by_call(self) -> bool:
        """Return True if the candidate's violations concern only the calls that compile them."""
        candidate, platform = self._candidate, self._judge.platform
        if candidate.kernel is None or not self._of_platform:
            return False
        return refused_whole(candidate.kernel, candidate.violations, candidate.profile, platform) is None

    def _with_made(self, recorded: Sequence[Case]) -> dict[str, list[Case]]:
        """Return the last stage's cases by overload: recorded ones, OpInfo's samples, and variants."""
        options, candidate = self._options, self._candidate
        known = {case.id for cases in self.cases.values() for case in cases}
        samples = self._samples() if options.samples else []
        by_id: dict[str, dict[str, Case]] = {o: {c.id: c for c in cases} for o, cases in self.cases.items()}
        for case in (*recorded, *samples):
            by_id.setdefault(case.overload, {})[case.id] = case
        for overload, cases in by_id.items() if options.extended else ():
            cases.update({case.id: case for case in self._in_integers(list(cases.values()))})
            self._bases[overload] = list(cases.values())
            variants = self._variants[overload] = stream(self._bases[overload], options.seed, candidate.source)
            cases.update({variant.case.id: variant.case for variant in islice(variants, options.extended)})
        chosen = {o: options.arrange([c for c in cases.values() if c.id not in known]) for o, cases in by_id.items()}
        if not candidate.contract:
            cache = self._cache if options.samples else None
            self._optional = in_other_dtypes(candidate.overloads, chosen, cache, options.seed, candidate.source)
        return chosen

    def _only(self, name: str, cases: dict[str, list[Case]]) -> dict[str, list[Case]]:
        """Return only the case with this id; raise UserError if no case in the trial has it."""
        unknown = UserError(f"no case {name}; it may be of another --seed, or of other --cases")
        if not _ID.fullmatch(name):
            raise unknown
        for (overload, _), extra in self._optional.items():
            cases[overload] += extra
        self._optional = {}
        for turn in range(-1, SEARCHES):
            for overload, more in (self._searched(turn, cases) if turn >= 0 else cases).items():
                cases[overload] = list({case.id: case for case in (*cases[overload], *more)}.values())
            for overload, known in cases.items():
                further = (exhaustive, refused_cases, self._every_value) if turn < 0 else ()
                for make in (list, *further):
                    chosen = [case for case in make(known) if case.id == name]
                    if chosen:
                        return {overload: chosen}
        raise unknown

    def _samples(self) -> list[Case]:
        """Return OpInfo's samples, or a selection for a bare file, which names no dtypes."""
        candidate = self._candidate
        assert candidate.kernel is not None
        overloads = list(candidate.overloads)
        if candidate.contract:
            return kept_cases(self._cache, overloads, candidate.kernel.dtypes)
        groups = (kept_cases(self._cache, overloads, dtypes, every=False) for dtypes in BARE_DTYPES)
        usual = (in_usual_dtypes(group) for group in groups)
        samples = by_overload(next(filter(None, usual), []))
        return [case for overload in overloads for case in spread(samples.get(overload, []), MAX_BARE_SAMPLES)]

    def _in_integers(self, cases: Sequence[Case]) -> list[Case]:
        assert self._candidate.kernel is not None
        return in_integers(cases, self._candidate.kernel.dtypes) if self._candidate.contract else []

    def _failed(self) -> bool:
        optional = {(overload, case.id) for (overload, _), cases in self._optional.items() for case in cases}
        return any(verdict.failed for key, verdict in self.verdicts.items() if key not in optional)

    def _not_served(self, cases: Sequence[Case]) -> Verdict | None:
        """Return the verdict on the first case that was skipped although ATen answers it."""
        skipped = ((c, self.verdicts[c.overload, c.id]) for c in cases)
        return next((v for c, v in skipped if v.outcome is Outcome.SKIPPED and has_reference(c)), None)

    def _search(self) -> tuple[str, ...]:
        """Search for cases that reach the remaining lines, and describe the lines still not reached."""
        for turn in range(SEARCHES):
            if self._failed() or not self._missing():
                break
            if self._options.extended:
                with _PREPARING:
                    more = self._searched(turn, self.cases)
                self._judge_stage(SEARCH, more)
        return () if self._failed() else self._missing()

    def _missing(self) -> tuple[str, ...]:
        kernel = self._candidate.kernel
        assert kernel is not None
        reached = [verdict.reached for verdict in self.verdicts.values() if verdict.reached]
        return unreached(kernel, reached) if reached else ()

    def _searched(self, turn: int, known: Mapping[str, list[Case]]) -> dict[str, list[Case]]:
        """Return new variants for each overload, without those that a bare file may refuse."""
        variants: dict[str, list[Case]] = {}
        more = min(SEARCHED, self._options.extended) << turn
        for overload, cases in known.items():
            ids = {case.id for case in cases}
            fresh = (v.case for v in self._variants.get(overload, ()) if v.case.id not in ids)
            variants[overload] = list(islice(fresh, more))
        if not self._candidate.contract:
            beyond(known, variants)
        return variants

    def _where_aten_refuses(self, result: TrialResult) -> TrialResult:
        """Judge calls that ATen refuses: a kernel may answer them, but must not access memory outside the call.

        A failure counts against a kernel file. For a bare file, it only restricts its purpose.
        """
        with _PREPARING:
            cases = {o: refused_cases(cases) for o, cases in self.cases.items()}
        before = dict(self.verdicts)
        saved = {o: list(cases) for o, cases in self.cases.items()}
        self._judge_stage(REFUSED, cases)
        failed = next((v for key, v in self.verdicts.items() if key not in before and v.failed), None)
        if failed is None or not self._candidate.contract:
            self.cases, self.verdicts = saved, before
        if failed is None:
            return result
        if not self._candidate.contract:
            return replace(result, narrower={**result.narrower, "calls that ATen refuses": failed.detail})
        return result.failing(failed, REFUSED)

    def _concluded(self, result: TrialResult, stage: str, missing: tuple[str, ...] = ()) -> TrialResult:
        """Return the result from the verdicts so far; `missing` describes lines that no case reached."""
        narrower = {**result.narrower, **refused_dtypes(self._optional, self.cases, self.verdicts)}
        self._optional = {}  # those that count have become part of the cases
        order = [(overload, case.id) for overload, cases in self.cases.items() for case in cases]
        verdicts = [self.verdicts[key] for key in order if key in self.verdicts]
        ran = [v for v in verdicts if v.outcome is not Outcome.SKIPPED]
        passed = [v for v in ran if v.outcome is Outcome.PASS]
        failed = next((v for v in ran if v.failed), None)
        if len(verdicts) < len(order) and failed is None:
            raise RuntimeError(f"{len(order) - len(verdicts)} of {len(order)} cases have no verdict")
        result = replace(result, cases=len(ran), passed=len(passed), skipped=len(verdicts) - len(ran))
        if failed is not None:
            return result.failing(failed, stage)
        if not ran:
            reason = f"OpInfo has no sample and no trace has a call; record one: {program_name()} capture MODEL"
            return replace(result, detail=f"no case was run: {verdicts[0].detail if verdicts else reason}")
        detail = "; ".join([f"{len(passed)} cases passed{self._where_passed()}", *missing])
        if result.compile_only:
            targets = ", ".join(f"{t.backend}:{t.arch}" for t in self._judge.platform.targets)
            detail = f"compiles for {targets}"
        printed = next((v.report for v in passed if v.report), "")
        result = replace(result, outcome=Outcome.PASS, detail=detail, report=printed)
        return replace(result, narrower=narrower, unreached=missing)

    def _where_passed(self) -> str:
        """Describe the tensor dtypes and ranks in the passed cases."""
        cases = [case for cases in self.cases.values() for case in cases if self._passed(case)]
        dtypes = sorted({dtype for case in cases for dtype in case.dtypes})
        ranks = sorted({len(shape) for case in cases for shape in case.shapes})
        if not dtypes:
            return ""
        rank = f"rank {ranks[0]}" if len(ranks) == 1 else f"rank {ranks[0]} to {ranks[-1]}"
        return f": {', '.join(dtypes)}, of {rank}"

    def _with_known(self, result: TrialResult) -> TrialResult:
        """Return the result combined with stored verdicts: a kernel that failed another case before does not pass."""
        jobs = [self.job(o, ()) for o in self.cases]
        standings = [self._judge.standings(job.kernels)[job.kernels, job.plan.overload] for job in jobs]
        failed = next((v for s in standings for v in s.failed.values()), None)
        result = replace(result, independent=min((s.independent for s in standings), default=0))
        if failed is None or result.outcome not in (Outcome.PASS, Outcome.SKIPPED):
            return result
        known = f"known from another case ({failed.case}): {failed.detail}"
        return result.failing(replace(failed, detail=known, case=result.reproducer), result.stage)


def refused_cases(cases: Sequence[Case]) -> list[Case]:
    """Return calls that ATen refuses, derived from the cases that were not generated."""
    return refused([case for case in cases if not case.made])
