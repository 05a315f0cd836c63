"""Implement `enable verify --sanitize`: rerun some passed cases on CUDA under compute-sanitizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from traces import UserError
from verify.cases.case import Case, spread
from verify.debugging.cuda_debugger import HOW_TO_GET, sanitized, sanitizer
from verify.judging.job import Job
from verify.judging.stages import TrialResult
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform

SANITIZED = 12  # maximum cases per overload
TOOLS = ("memcheck", "racecheck")


def check_sanitizer(platform: Platform) -> None:
    """Raise UserError if nothing can run under compute-sanitizer."""
    if not platform.device or all(target.backend != "cuda" for target in platform.targets):
        raise UserError(f"--sanitize is for CUDA, and {platform.name} runs none; add --platform cuda, or leave it out")
    if sanitizer() is None:
        raise UserError(f"--sanitize runs compute-sanitizer, which is not on the PATH; {HOW_TO_GET}")


def under_sanitizer(
    result: TrialResult,
    jobs: Sequence[Job],
    verdicts: Mapping[tuple[str, str], Verdict],
    platform: Platform,
    sandbox: str,
) -> TrialResult:
    """Run each tool on some passed cases from each job, and return the result with the findings.

    The cases are spread over those that passed. The first error makes the outcome WRONG.

    Args:
        result: Trial result so far.
        jobs: The trial's jobs.
        verdicts: Verdicts by overload and case id.
        platform: Platform with the CUDA device.
        sandbox: `full` or `none`.

    Raises:
        UserError: A tool did not run to its end.
    """
    ran = 0
    for job in jobs:
        cases = spread([case for case in job.cases if _passed(verdicts, job.plan.overload, case)], SANITIZED)
        for tool in TOOLS if cases else ():
            finding = sanitized(job, cases, platform.devices()[0], sandbox, tool)
            if finding is not None:
                case, report = finding
                detail = f"compute-sanitizer's {tool}: {report.splitlines()[1]}"
                result = replace(result, outcome=Outcome.WRONG, layer="access", rule=tool, detail=detail)
                return replace(result, reproducer=case.id, report=report)
        ran += len(cases)
    return replace(result, detail=f"{result.detail}; {ran} of them under {' and '.join(TOOLS)}")


def _passed(verdicts: Mapping[tuple[str, str], Verdict], overload: str, case: Case) -> bool:
    verdict = verdicts.get((overload, case.id))
    return verdict is not None and verdict.outcome is Outcome.PASS
