"""Select the cases for a trial of `enable verify`: the workspace's recorded calls, and the command's options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from enable.cover.coverage import cases_by_overload
from enable.cover.recorded import recorded
from enable.progress import Progress, show_progress
from enable.subgraphs import fused_cases
from enable.workspace import Workspace
from traces import UserError
from traces.errors import choose_from
from verify.cases.case import Case, spread
from verify.debugging.sanitizing import under_sanitizer
from verify.judging.candidate import Candidate, alone
from verify.judging.job import RUN
from verify.judging.judge import Judge
from verify.judging.stages import MAX_EXTENDED, TrialOptions, TrialResult, TrialStage, Watcher
from verify.judging.trial import KernelTrial
from verify.outcome import LAYERS, OPTIONAL, Outcome

SOURCES = ("opinfo", "extended", "traces")  # default sources of cases; trace:NAME is another one
RECORDED = "recorded"  # the stage with recorded cases, samples and variants
MAX_RECORDED = 64  # maximum number of cases per overload from the workspace's traces


@dataclass(frozen=True)
class VerifyRequest:
    """The options of a trial.

    Attributes:
        sources: Sources of cases.
        seed: Seed for extended cases.
        off: Layers to skip.
        case: Judge only this case.
        exhaustive: Continue after a case that fails; judge every value of small dtypes, and long series of draws.
        hours: After a pass, continue with new variants for this long.
        limit: Maximum number of variants per overload.
        every: The whole library is judged, so traces are read once for all kernels.
        sanitize: Run some passed cases again under compute-sanitizer.
    """

    sources: tuple[str, ...] = SOURCES
    seed: int = 0
    off: frozenset[str] = frozenset()
    case: str | None = None
    exhaustive: bool = False
    hours: float = 0.0
    limit: int = MAX_EXTENDED
    every: bool = False
    sanitize: bool = False

    @property
    def options(self) -> TrialOptions:
        """Return the options for the trial."""
        samples, extended = "opinfo" in self.sources, self.limit if "extended" in self.sources else 0
        return TrialOptions(
            self.seed,
            samples,
            extended,
            self.off,
            first=not self.exhaustive,
            draws=self.exhaustive,
            values=self.exhaustive,
            seconds=self.hours * 3600,
            case=self.case,
        )


def check_request(sources: Sequence[str], off: Sequence[str]) -> None:
    """Raise UserError for an unknown source of cases or an unknown layer."""
    for source in sources:
        if source not in SOURCES and not source.startswith("trace:"):
            raise UserError(f"unknown cases {source!r}{choose_from(source, (*SOURCES, 'trace:NAME'))}")
    for layer in off:
        if layer not in OPTIONAL:
            problem = "cannot be left out" if layer in LAYERS else "is not a layer"
            raise UserError(f"{layer!r} {problem}{choose_from(layer, OPTIONAL)}")


def verify_candidate(candidate: Candidate, request: VerifyRequest, judge: Judge, workspace: Workspace) -> TrialResult:
    """Judge a candidate on the requested cases. Raise UserError if a trace does not exist."""
    return tried_candidate(candidate, request, judge, workspace)[0]


def tried_candidate(
    candidate: Candidate, request: VerifyRequest, judge: Judge, workspace: Workspace
) -> tuple[TrialResult, KernelTrial]:
    """Judge a candidate as `verify_candidate` does, and return the trial with its cases and verdicts, too."""
    if RUN in request.off and not judge.platform.targets:
        raise UserError(
            f"platform {judge.platform.name} names no target to compile for; choose another, or run the kernels"
        )
    with show_progress(f"verify {candidate.name}: preparing cases") as work:
        counting = Counting(candidate.name, work)
        trial = KernelTrial(candidate, alone(candidate), judge, workspace.cache, request.options, counting)
        result = trial.run([TrialStage(RECORDED, _recorded(candidate, request, workspace))])
        if result.outcome is Outcome.PASS and request.sanitize:
            jobs = [trial.job(overload, cases) for overload, cases in trial.cases.items()]
            result = under_sanitizer(result, jobs, trial.verdicts, judge.platform, judge.confinement)
    return result, trial


class Counting(Watcher):
    """Shows the progress of a trial."""

    def __init__(self, name: str, work: Progress) -> None:
        self._name, self._work = name, work

    def stage(self, name: str, cases: int) -> None:
        """Start counting the stage's cases."""
        title = f"verify {self._name}" if name == RECORDED else f"verify {self._name}: {name}"
        self._work.count(title, cases, "starting children")

    def verdict(self, overload: str) -> None:
        """Count one case."""
        self._work.step(overload)


def _recorded(candidate: Candidate, request: VerifyRequest, workspace: Workspace) -> list[Case]:
    """Return the recorded cases that the request selects."""
    cases: list[Case] = []
    if "traces" in request.sources:
        cases += _of_workspace(candidate, request, workspace)
    for source in request.sources:
        if source.startswith("trace:"):
            trace = workspace.open_trace(name := source.removeprefix("trace:"))
            calls = {**cases_by_overload(trace), **fused_cases(workspace.fusions().values(), trace, name)}
            cases += [case for overload in candidate.overloads for case in calls.get(overload, [])]
    if not cases and "extended" in request.sources and not {"opinfo", "traces"} & {*request.sources}:
        raise UserError("extended cases are made from others; add opinfo, traces or trace:NAME to --cases")
    return cases


def _of_workspace(candidate: Candidate, request: VerifyRequest, workspace: Workspace) -> list[Case]:
    """Return evenly spread cases from the workspace's traces; models' traces take precedence over OpInfo's."""
    workspace_cases = recorded(workspace, None if request.every else frozenset(candidate.overloads))
    chosen: list[Case] = []
    for overload in candidate.overloads:
        of_models, of_opinfo = workspace_cases.cases_of(overload)
        chosen += spread(of_models, MAX_RECORDED)
        chosen += spread(of_opinfo, MAX_RECORDED - min(len(of_models), MAX_RECORDED))
    return chosen


def path_of(text: str) -> Path | None:
    """Return the path if the text names a file, or None if it names an operator."""
    path = Path(text)
    return path if path.is_file() or path.suffix in (".py", ".md", ".txt") else None
