"""Judge mutants in worker processes, each with its own workspace, as `enable verify FILE --seed S` does."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGTERM, signal
from typing import Any

from benchmarks.kernel_mutants.drawing import Mutant, draw
from benchmarks.kernel_mutants.equivalence import is_equivalent
from benchmarks.kernel_mutants.program import linked, own_text
from enable.cover.verification import RECORDED, VerifyRequest
from enable.workspace import Workspace
from generate import BLOCKS
from verify import platforms
from verify.cases.case import Case
from verify.judging.asking import Children
from verify.judging.candidate import Candidate, alone, read_candidate
from verify.judging.job import Job
from verify.judging.job_run import Run
from verify.judging.judge import Judge, JudgeClosed
from verify.judging.stages import MAX_EXTENDED, TrialResult, TrialStage
from verify.judging.trial import KernelTrial
from verify.judging.unreached import _unpacked, unreached
from verify.lint import load_profile
from verify.outcome import Outcome, Verdict
from verify.platforms import COMPILE

# States of a judged mutant.
STILLBORN = "stillborn"  # refused by lint, or it does not compile
KILLED = "killed"
SURVIVED = "survived"
UNREACHED = "unreached"  # as equivalent, and no case that was judged ran the changed statement
EQUIVALENT = "equivalent"  # every launch has the same PTX, grid and arguments
UNDECIDED = "undecided"  # its trial did not end in time, or no case ran
UNSOUND = "unsound"  # the original fails the case that the mutant fails
FIRST_SECONDS = 20.0  # on an idle machine most mutants that fail have failed by then
NEVER_RAN = ("lint", "compile")  # layers that reject a kernel before it runs


@dataclass(frozen=True)
class Settings:
    """How mutants are judged.

    Attributes:
        seed: Seed for the mutants and for the cases of each trial.
        platform: Platform to judge on.
        seconds: Time limit for a trial, and for the comparison that follows a passed one.
        files: Kernel files to draw from.
        kinds: Classes to draw from.
        limit: Maximum number of extended cases for each overload, as in `enable verify --limit`.
        sift_after: Seconds after which a mutant that has not failed is compared with the original.
    """

    seed: int
    platform: str
    seconds: float
    files: tuple[Path, ...]
    kinds: tuple[str, ...]
    limit: int = MAX_EXTENDED
    sift_after: float = FIRST_SECONDS


class MutantTrial(KernelTrial):
    """Trial of a linked text that makes the cases of the file that imports its blocks."""

    def _missing(self) -> tuple[str, ...]:
        """Describe the file's own lines that no case reached; those of blocks start no search for cases."""
        kernel = self._candidate.kernel
        assert kernel is not None
        reached = [verdict.reached for verdict in self.verdicts.values() if verdict.reached]
        return unreached(replace(kernel, written=own_text(kernel.written)), reached) if reached else ()


class RecordingJudge(Judge):
    """Judge that keeps the lines that its cases reached, also those of a trial that ran out of time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.reached: list[str] = []

    def _judged(self, run: Run, job: Job, case: Case) -> Verdict:
        verdict = super()._judged(run, job, case)
        self.reached.append(verdict.reached)
        return verdict


def is_reached(line: int, reached: Sequence[str]) -> bool:
    """Return True if one of these records, as encoded by verify/child/reach.py, has a line."""
    return any(str(line) in _unpacked(part) for text in reached for part in text.split(","))


class MutantJudge:
    """Context manager around one judge that is started again after a trial that ran out of time."""

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        self._settings = settings
        self._platform = platforms.load(settings.platform)
        self._profile = load_profile(self._platform.lint).with_blocks(BLOCKS)
        self._workspace = workspace
        self._store = workspace.verdicts()
        self._judge: RecordingJudge | None = None
        self._reached: list[str] = []  # lines of the mutant that cases reached

    def close(self) -> None:
        """End the judge's children."""
        if self._judge is not None:
            self._judge.close()
        self._store.close()

    def judged(self, mutant: Mutant) -> dict[str, Any]:
        """Return the record of a mutant: its state, and the outcome of its trial.

        Most mutants fail within seconds. A mutant that does not is compared with the original, because most of these
        are equivalent and need no trial. For the rest the trial goes on: the store has the verdicts so far.
        """
        started = time.monotonic()
        settings = self._settings
        state, trial, result = self._tried(mutant, min(settings.sift_after, settings.seconds))
        if state in (UNDECIDED, SURVIVED) and trial.cases:
            original = self._trial(self._candidate(linked(Path(mutant.file)), mutant.file))
            cache = self._workspace.cache / "mutants-ptx"
            if is_equivalent(original, trial, self._platform, cache, mutant.is_device, settings.seconds):
                state = EQUIVALENT if is_reached(mutant.statement, self._reached) else UNREACHED
        left = settings.seconds - settings.sift_after
        if state == UNDECIDED and result is None and left > 0:
            state, trial, result = self._tried(mutant, left)
        evidence = {"detail": "out of time"} if result is None else _evidence(result)
        return {"state": state, "seconds": round(time.monotonic() - started, 1), **evidence}

    def _tried(self, mutant: Mutant, seconds: float) -> tuple[str, KernelTrial, TrialResult | None]:
        """Return the state after a trial, the trial, and its result; None if the time was too short."""
        trial = self._trial(self._candidate(mutant.text, mutant.file))
        assert self._judge is not None
        self._judge.reached = self._reached = []
        try:
            with self._limited(seconds):
                result = trial.run([TrialStage(RECORDED, [])])
                return self._state(mutant, trial, result), trial, result
        except JudgeClosed:
            return UNDECIDED, trial, None

    def _candidate(self, text: str, file: str) -> Candidate:
        candidate = read_candidate(text, Path(file), self._profile, None, self._profile)
        return replace(candidate, source=own_text(text))  # cases depend on the numbers in it

    def _trial(self, candidate: Candidate) -> KernelTrial:
        if self._judge is None:
            self._judge = RecordingJudge(self._platform, self._store, workers=1, cache=self._workspace.cache)
        settings = self._settings
        options = VerifyRequest(sources=("opinfo", "extended"), seed=settings.seed, limit=settings.limit).options
        return MutantTrial(candidate, alone(candidate), self._judge, self._workspace.cache, options)

    def _state(self, mutant: Mutant, trial: KernelTrial, result: TrialResult) -> str:
        """Return the state that follows from a trial; a failed case counts if the original passes it."""
        if result.outcome in (Outcome.PASS, Outcome.SKIPPED):
            return SURVIVED if result.passed else UNDECIDED
        if result.layer in NEVER_RAN:
            return STILLBORN
        original = self._trial(self._candidate(linked(Path(mutant.file)), mutant.file))
        failed = [(o, case) for o, cases in trial.cases.items() for case in cases if case.id == result.reproducer]
        for overload, case in failed:
            verdicts = trial.verdicts.get((overload, case.id))
            if verdicts is not None and verdicts.failed:
                control = self._judge.judge([original.job(overload, [case])]) if self._judge else {}
                if any(verdict.failed for verdict in control.values()):
                    return UNSOUND
        return KILLED

    @contextmanager
    def _limited(self, seconds: float) -> Iterator[None]:
        """End the judge, and so the trial, after this time."""
        judge = self._judge
        assert judge is not None
        timer = threading.Timer(seconds, judge.close)
        timer.start()
        try:
            yield
        except JudgeClosed:
            self._judge = None
            raise
        finally:
            timer.cancel()


def _evidence(result: TrialResult) -> dict[str, Any]:
    evidence = {"outcome": str(result.outcome), "layer": result.layer, "rule": result.rule, "stage": result.stage}
    return {**evidence, "cases": result.cases, "detail": result.detail[:300], "unreached": list(result.unreached)}


def work(connection: Connection, settings: Settings) -> None:
    """Judge the mutants whose numbers arrive, until the parent closes the connection."""
    signal(SIGTERM, lambda *_: sys.exit(1))
    warnings.simplefilter("ignore")
    Children._cache_directory = _shared_cache  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        judge = MutantJudge(settings, Workspace(Path(directory) / ".enable"))
        try:
            while True:
                connection.send(record(judge, settings, connection.recv()))
        except (EOFError, OSError):
            return
        finally:
            judge.close()


def _shared_cache(children: Children, mode: str) -> str | None:
    """Return one directory of compiled kernels for all mutants, which share most of their functions.

    Triton's own keys contain the source of every function that a kernel uses.
    """
    if mode != COMPILE or children._cache is None:
        return None
    directory = children._cache / "mutants"
    directory.mkdir(parents=True, exist_ok=True)
    return str(directory.absolute())


def record(judge: MutantJudge, settings: Settings, number: int) -> dict[str, Any]:
    """Draw and judge one mutant, and return its record."""
    mutant = draw(settings.seed, number, settings.files, settings.kinds)
    facts = {name: value for name, value in vars(mutant).items() if name != "text"}
    return {**facts, "file": name_of(mutant.file), "seed": settings.seed, **judge.judged(mutant)}


def name_of(file: str) -> str:
    """Return a kernel file's directory and name, such as `scan/cumsum.py`."""
    return "/".join(Path(file).parts[-2:])
