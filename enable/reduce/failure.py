"""Find a failing case of a kernel file, and try smaller programs on it in the judge's sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from enable.cover.verification import VerifyRequest, tried_candidate
from enable.workspace import Workspace
from generate import BLOCKS
from traces import UserError
from traces.errors import read_problem
from traces.program import program_name
from traces.values import Bytes, unpack
from verify.cases.case import Case, case_of_values
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.judging.candidate import Candidate, completed, read_candidate
from verify.judging.dialect import lacking
from verify.judging.job import RUN, Job
from verify.judging.judge import Judge
from verify.lint import load_profile
from verify.lint.profile import ANY_FILE
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform, Target
from verify.sandbox.children import ChildDied

FAILURES = (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.CRASH, Outcome.TIMEOUT, Outcome.WRONG)
_MESSAGES = (  # the most telling line of a compiler's log, best first
    re.compile(r"Assertion [`'].*?' failed"),
    re.compile(r"LLVM ERROR: .*"),
    re.compile(r"\berror\s*:(?! Failures have been detected while processing).*"),
    re.compile(r"Pipeline failed while executing \[`\w+`"),
)
_POSITION = re.compile(
    r"\bat line \d+( of \S+)?, column \d+:?|\S+\.(py|cpp|h|mlir|ptx):\d+(:\d+)*:?|%\w+|0x\w+|\btmp\w*"
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


@dataclass(frozen=True)
class Failure:
    """How a program fails.

    Attributes:
        outcome: The outcome.
        layer: Layer of judging that failed it.
        rule: The layer's rule.
        message: The message without numbers, positions, addresses and temporary names.
    """

    outcome: Outcome
    layer: str
    rule: str
    message: str

    @classmethod
    def of(cls, verdict: Verdict) -> Failure:
        """Return how a verdict fails."""
        return cls(verdict.outcome, verdict.layer, verdict.rule, normalised(headline(verdict)))


def headline(verdict: Verdict) -> str:
    """Return one line on a failure: the compiler's assertion, error or failed pass, or the verdict's detail."""
    log = verdict.report if verdict.layer == "compile" else ""
    return next((match[0] for pattern in _MESSAGES if (match := pattern.search(log))), verdict.detail)


def normalised(message: str) -> str:
    """Return a message without numbers, positions, addresses and names of temporary files."""
    return " ".join(_NUMBER.sub("N", _POSITION.sub("", message)).split())


@dataclass(frozen=True)
class FailingCase:
    """The case on which a kernel file fails.

    Attributes:
        candidate: The kernel file.
        job: Job for the case alone.
        verdict: Its verdict.
        arguments: The call's arguments by schema name.
    """

    candidate: Candidate
    job: Job
    verdict: Verdict
    arguments: dict[str, Any]


def find_failure(
    path: Path, operator: str | None, request: VerifyRequest, workspace: Workspace, judge: Judge
) -> FailingCase | None:
    """Judge a file and return the first case that fails, or None if it passes.

    Kernels are first only compiled for all targets, which is quick and needs no device.

    Raises:
        UserError: The file cannot be judged, or it fails in a way that has no smaller program.
    """
    candidate = _read(path, operator, judge.platform)
    for off in ({RUN, "lint"}, {"lint"}):
        if RUN in off and not judge.platform.targets:
            continue
        result, trial = tried_candidate(candidate, replace(request, off=frozenset(off)), judge, workspace)
        for overload, case in ((o, case) for o, cases in trial.cases.items() for case in cases):
            verdict = trial.verdicts.get((overload, case.id))
            if verdict is not None and verdict.failed:
                if verdict.outcome not in FAILURES or verdict.layer == "lint":
                    raise UserError(f"{path}: {verdict.detail}; this is a rule of {program_name()}, not a failure")
                return FailingCase(candidate, trial.job(overload, (case,)), verdict, unpack(case.load()))
        if result.outcome not in (Outcome.PASS, Outcome.SKIPPED):
            raise UserError(f"{path}: {result.detail}; see: {program_name()} verify {path}")
    return None


def _read(path: Path, operator: str | None, platform: Platform) -> Candidate:
    profile, of_platform = load_profile(ANY_FILE), load_profile(platform.lint)
    profiles = profile.of_platform(of_platform).with_blocks(BLOCKS), of_platform.with_blocks(BLOCKS)
    try:
        text = path.read_text(encoding="utf-8")
        candidate = read_candidate(text, path, profiles[0], operator, profiles[1])
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({read_problem(error)}); name a kernel file") from error
    if candidate.kernel is None:
        problem = candidate.violations[0] if candidate.violations else "it has no wrapper"
        raise UserError(f"{path}: {problem}; see: {program_name()} lint {path}")
    return candidate


class Trials:
    """Tries programs on inputs, each in a fresh child of the judge.

    Attributes:
        target: The target for which a program does not compile; None if it fails when it runs.
        verdict: Verdict on the unreduced program.
        count: How many programs were judged.
    """

    def __init__(self, judge: Judge, job: Job, verdict: Verdict, target: Target | None) -> None:
        self._judge, self._job = judge, job
        self.verdict, self.target, self.count = verdict, target, 0
        self.failure = Failure.of(verdict)

    @property
    def job(self) -> Job:
        """Return the job of the trials; its kernel and case are those of the unreduced program."""
        return self._job

    @property
    def platform(self) -> Platform:
        """Return the platform of the trials."""
        return self._judge.platform

    def judge(self, source: str, arguments: Mapping[str, Any]) -> tuple[Verdict | None, list[Bytes | None]]:
        """Return the verdict on a program, and the bytes of its answer; None if it cannot be judged."""
        self.count += 1
        kernel = self._job.kernel
        try:
            text = completed(source, list(kernel.overloads), kernel.dtypes)
            parsed = KernelFile.parse(text, kernel.path)
            case = case_of_values(self._job.plan.overload, **arguments)
        except (KernelFileError, SyntaxError, RuntimeError, ValueError):
            return None, []
        return self._judged(parsed, case)

    def _judged(self, kernel: KernelFile, case: Case) -> tuple[Verdict | None, list[Bytes | None]]:
        job = replace(self._job, kernel=kernel, cases=(case,))
        try:
            with self._judge.running(job) as run:
                judged = run.judge(case)
        except (ChildDied, RuntimeError, TypeError, LookupError):  # such as arguments that the operator does not take
            return None, []
        return judged.verdict, judged.answered[1].data if judged.answered else []


@contextmanager
def trials(failing: FailingCase, judge: Judge, workspace: Workspace) -> Iterator[Trials]:
    """Provide the trials for a failing case; a failure to compile is tried on its target alone, without running.

    Raises:
        UserError: The failure is not the compiler's.
    """
    if lacking(failing.verdict.detail):
        raise UserError(
            f"case {failing.job.cases[0].id}: {failing.verdict.detail}; the platform's file says so, not the compiler, "
            "so there is nothing to reduce"
        )
    if RUN not in failing.job.off:
        yield Trials(judge, failing.job, failing.verdict, None)
        return
    case, job = failing.job.cases[0], replace(failing.job, strict=False, repeats=0, dialect=None)
    with closing(workspace.verdicts()) as store:
        for target in judge.platform.targets:
            platform = replace(judge.platform, targets=(target,))
            with Judge(platform, store, workers=1, sandbox=judge.confinement) as alone, alone.running(job) as run:
                verdict = run.judge(case).verdict
                if Failure.of(verdict) == Failure.of(failing.verdict):
                    break
        else:
            raise UserError(f"case {case.id} fails only if it is compiled for several targets; it cannot be reduced")
        with Judge(platform, store, workers=1, sandbox=judge.confinement) as alone:
            yield Trials(alone, job, verdict, target)
