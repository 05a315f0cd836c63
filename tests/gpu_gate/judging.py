"""What one run of the gate does: judge kernel files, run `pytest -m gpu`, and make rows of the page of the results."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from enable.progress import show_progress
from enable.workspace import Workspace
from generate.kernel_library import Library
from tests.gpu_gate.cases import Cases
from tests.gpu_gate.page import ROOT, name_of
from verify.cases.case import Case, by_overload
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job, Judge
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform

MOST_PROCESSES = 16  # that choose cases, of a gigabyte each; as many as a judge has workers
PYTEST_WORKERS = 6  # that share the GPU: most of a test's time is a compiler's and a child's start on the CPU
REPEATED = 1  # cases of an overload that are run again, with other contents


@dataclass(frozen=True)
class Results:
    """The cases of each kernel file, and the verdicts on them that have arrived, by overload and case."""

    cases: dict[str, list[Case]] = field(default_factory=dict)
    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)

    def failure(self, name: str) -> Verdict | None:
        """Return the first verdict that speaks against a kernel file."""
        return next((v for v in self._arrived(name) if v is not None and v.failed), None)

    def row(self, name: str) -> dict[str, Any] | None:
        """Return what the page says of a kernel file beside its key; None if cases are left and none failed."""
        arrived, failed = self._arrived(name), self.failure(name)
        if name not in self.cases or (failed is None and None in arrived):
            return None
        verdicts = [v for v in arrived if v is not None]
        counts = Counter(v.outcome for v in verdicts)
        row = {"cases": len(arrived), "passed": counts[Outcome.PASS], "skipped": counts[Outcome.SKIPPED]}
        if failed is not None:
            return {**row, "outcome": str(failed.outcome), "case": failed.case, "detail": failed.detail}
        if not counts[Outcome.PASS]:
            return {**row, "outcome": "SKIPPED", "detail": verdicts[0].detail if verdicts else "there is no case"}
        return {**row, "outcome": "PASS"}

    def _arrived(self, name: str) -> list[Verdict | None]:
        return [self.verdicts.get((case.overload, case.id)) for case in self.cases.get(name, [])]


def judge_all(
    workspace: Workspace, platform: Platform, library: Library, kernels: Sequence[KernelFile], results: Results
) -> None:
    """Judge kernel files, and add to the results as they arrive.

    Raises KeyboardInterrupt and JudgeClosed when interrupted, and UserError if the workspace cannot be written.
    """
    chosen = Cases(workspace.cache / "gate")
    with show_progress("choosing cases", len(kernels)) as progress:
        chosen.prepare(kernels, min(MOST_PROCESSES, os.cpu_count() or 1), progress.step)
    results.cases.update({name_of(kernel): chosen.of(kernel) for kernel in kernels})
    jobs = [job for cases in results.cases.values() for job in jobs_of(library, cases)]
    store = workspace.verdicts()
    try:
        with (
            show_progress("judging", sum(len(job.cases) for job in jobs)) as progress,
            Judge(platform, store, cache=workspace.compiled) as judge,
        ):

            def arrived(job: Job, verdict: Verdict) -> None:
                results.verdicts[job.plan.overload, verdict.case] = verdict
                progress.step(job.plan.overload)

            judge.judge(jobs, arrived)
    finally:
        store.close()


def jobs_of(library: Library, cases: Sequence[Case]) -> list[Job]:
    """Return the cases of a kernel file as jobs, one for each of its overloads."""
    jobs = []
    for overload, of_one in by_overload(cases).items():
        match = library.match(overload)
        assert match is not None, overload
        jobs.append(Job(match.plan, match.kernel, tuple(of_one), match.copy, repeats=REPEATED, first=True))
    return jobs


def run_pytest() -> dict[str, int] | None:
    """Run `pytest -m gpu` and return how many tests passed, failed and were skipped; None if it did not end so."""
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.xml"
        workers = str(min(PYTEST_WORKERS, os.cpu_count() or 1))
        command = [sys.executable, "-m", "pytest", "-m", "gpu", "-n", workers, f"--junitxml={results}"]
        status = subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode
        return counted(results) if status in (0, 1) else None  # all passed, or some failed


def counted(results: Path) -> dict[str, int]:
    """Return the counts of a file of pytest's results, in JUnit's format."""
    total = Counter[str]()
    for suite in ElementTree.parse(results).getroot().iter("testsuite"):
        total.update({name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")})
    failed, skipped = total["failures"] + total["errors"], total["skipped"]
    return {"passed": total["tests"] - failed - skipped, "failed": failed, "skipped": skipped}
