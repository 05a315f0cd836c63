"""What a case launches, launched again in a child that holds the file's kernels and nothing else of it.

The guards of the other children run in the same Python as the file, so that a text that lint has not read could have
them say anything. What it launches is told by a call whose arguments hold zeros, which know nothing of the answer; the
child that carries it out on the real ones runs kernels that lint has read. So the answer is theirs or it is wrong.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from traces import TraceError
from traces.values import Bytes, Packed
from verify.cases.case import Expected
from verify.comparison.compare import compare
from verify.comparison.open_writes import leaves_open
from verify.judging.job import Job
from verify.judging.problems import Problem, first_line, side_effects
from verify.judging.reply import Reply
from verify.lint import ANY_FILE, Violation, lint_kernels, load_profile
from verify.outcome import Outcome
from verify.platforms import Platform

RERUN = "rerun"  # the child, and the layer that it is
ONE_IN = 8  # of a job's cases, beside those that are run again in other ways

Ask: TypeAlias = Callable[[Packed, dict[str, Any]], tuple[Reply, Packed | None]]
Conduct: TypeAlias = Callable[[Reply], Problem | None]


def is_rerun(job: Job, case: str) -> bool:
    """Whether the case is one of those, which the file cannot know: it depends on all of its text."""
    drawn = zlib.crc32(f"{case}{job.kernel.key}".encode()) % ONE_IN == 0
    return bool(job.repeats) and RERUN not in job.off and (case in job.repeated or drawn)


def rerun(
    job: Job, platform: Platform, expected: Expected, told: Ask, alone: Ask, conduct: Conduct
) -> list[Problem | None]:
    """What is wrong with the launches. told: asks for a list of them; alone: has it carried out; conduct: what of ATen
    was asked for there that may not be."""
    for kernel in (job.kernel, *((job.copy,) if job.copy else ()), *job.reached):
        violations = _violations(kernel.source, platform.lint)
        if violations:
            return [_cheat(f"its kernels are not run by themselves: {violations[0]}", violations[0].rule)]
    blank: list[Bytes | None] = [None if data is None else bytes(len(data)) for data in expected.before.data]
    listed, ghost = told(replace(expected.before, data=blank), {"log": True})
    if ghost is None or listed.log is None:
        why = first_line(listed.text) if listed.text else "its answer is malformed"
        return [_cheat(f"where its arguments hold zeros it fails: {why}", "zeros")]
    carried, data = alone(expected.before, {"log": listed.log, "allowed": sorted(job.allowed)})
    if data is None:
        return [_cheat(f"its launches fail by themselves: {first_line(carried.text)}", "launches", carried.text)]
    answer = replace(ghost, data=data.data)
    try:
        answer.validate("answer")
    except TraceError as error:
        return [_cheat(f"its launches leave another answer by themselves: {error}", "answer")]
    mismatch = compare(job.plan.overload, expected, answer, job.strict)
    if mismatch is None:
        return [conduct(carried), *side_effects(carried, leaves_open(expected))]
    text = "by themselves, without the wrapper, its launches leave another answer:"
    return [_cheat(f"{text} {mismatch.detail}", "answer", f"{text}\n{mismatch.report}")]


def _cheat(detail: str, rule: str, report: str = "") -> Problem:
    return Problem(Outcome.CHEAT, RERUN, detail, report, rule)


@lru_cache(maxsize=64)
def _violations(source: str, dialect: str) -> list[Violation]:
    """What the platform's dialect and that of bare files both find."""
    found = lint_kernels(source, load_profile(dialect))
    return found and lint_kernels(source, load_profile(ANY_FILE)) and found
