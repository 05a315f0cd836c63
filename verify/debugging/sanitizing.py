"""`enable verify --sanitize`: some of the cases that passed, once more on CUDA under compute-sanitizer."""

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

SANITIZED = 12  # cases of an overload
TOOLS = ("memcheck", "racecheck")


def check_sanitizer(platform: Platform) -> None:
    """Raises UserError where nothing can be run under compute-sanitizer."""
    if not platform.device or all(target.backend != "cuda" for target in platform.targets):
        raise UserError(f"--sanitize is for CUDA, and {platform.name} runs none; add --platform cuda, or leave it out")
    if sanitizer() is None:
        raise UserError(f"--sanitize runs compute-sanitizer, which is not on the PATH; {HOW_TO_GET}")


def under_sanitizer(
    found: TrialResult,
    jobs: Sequence[Job],
    verdicts: Mapping[tuple[str, str], Verdict],
    platform: Platform,
    sandbox: str,
) -> TrialResult:
    """The same with what each tool says of some cases of each job, spread over those that passed.

    Raises UserError where a tool does not come to its end.
    """
    ran = 0
    for job in jobs:
        cases = spread([case for case in job.cases if _passed(verdicts, job.plan.overload, case)], SANITIZED)
        for tool in TOOLS if cases else ():
            told = sanitized(job, cases, platform.devices()[0], sandbox, tool)
            if told is not None:
                case, report = told
                detail = f"compute-sanitizer's {tool}: {report.splitlines()[1]}"
                found = replace(found, outcome=Outcome.WRONG, layer="access", rule=tool, detail=detail)
                return replace(found, reproducer=case.id, report=report)
        ran += len(cases)
    return replace(found, detail=f"{found.detail}; {ran} of them under {' and '.join(TOOLS)}")


def _passed(verdicts: Mapping[tuple[str, str], Verdict], overload: str, case: Case) -> bool:
    verdict = verdicts.get((overload, case.id))
    return verdict is not None and verdict.outcome is Outcome.PASS
