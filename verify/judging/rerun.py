"""Repeat a case's launches in a child that runs only the file's kernels.

The guards of the other children run in the same Python process as the file, so a file that lint has not read
could falsify their reports. Here the launches are recorded by a call whose arguments hold zeros, so the recording
contains nothing about the answer. The child that carries them out on the real arguments runs only kernels that
lint has read. So the answer comes from these kernels, or it is wrong.
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

RERUN = "rerun"  # name of both the child's mode and the layer
ONE_IN = 8  # one in so many cases of a job is rerun, in addition to those that are repeated in other ways

Ask: TypeAlias = Callable[[Packed, dict[str, Any]], tuple[Reply, Packed | None]]
Conduct: TypeAlias = Callable[[Reply], Problem | None]


def is_rerun(job: Job, case: str) -> bool:
    """Return True if the case is rerun; the choice depends on the complete text of the file, which cannot know it."""
    drawn = zlib.crc32(f"{case}{job.kernel.key}".encode()) % ONE_IN == 0
    return bool(job.repeats) and RERUN not in job.off and (case in job.repeated or drawn)


def rerun(
    job: Job, platform: Platform, expected: Expected, record: Ask, replay: Ask, conduct: Conduct
) -> list[Problem | None]:
    """Return problems with a case's launches.

    Args:
        job: Kernel and plan.
        platform: Platform whose dialect applies.
        expected: ATen's answer.
        record: Function that requests the launch list.
        replay: Function that carries out a list.
        conduct: Function that returns a problem if forbidden ATen operators were called.
    """
    for kernel in (job.kernel, *((job.copy,) if job.copy else ()), *job.reached):
        violations = _violations(kernel.source, platform.lint)
        if violations:
            return [_cheat(f"its kernels are not run by themselves: {violations[0]}", violations[0].rule)]
    blank: list[Bytes | None] = [None if data is None else bytes(len(data)) for data in expected.before.data]
    recorded, ghost = record(replace(expected.before, data=blank), {"log": True})
    if ghost is None or recorded.log is None:
        reason = first_line(recorded.text) if recorded.text else "its answer is malformed"
        return [_cheat(f"where its arguments hold zeros it fails: {reason}", "zeros")]
    replayed, data = replay(expected.before, {"log": recorded.log, "allowed": sorted(job.allowed)})
    if data is None:
        return [_cheat(f"its launches fail by themselves: {first_line(replayed.text)}", "launches", replayed.text)]
    answer = replace(ghost, data=data.data)
    try:
        answer.validate("answer")
    except TraceError as error:
        return [_cheat(f"its launches leave another answer by themselves: {error}", "answer")]
    mismatch = compare(job.plan.overload, expected, answer, job.strict)
    if mismatch is None:
        return [conduct(replayed), *side_effects(replayed, leaves_open(expected))]
    text = "by themselves, without the wrapper, its launches leave another answer:"
    return [_cheat(f"{text} {mismatch.detail}", "answer", f"{text}\n{mismatch.report}")]


def _cheat(detail: str, rule: str, report: str = "") -> Problem:
    return Problem(Outcome.CHEAT, RERUN, detail, report, rule)


@lru_cache(maxsize=64)
def _violations(source: str, dialect: str) -> list[Violation]:
    """Return the violations in the platform's dialect, if the dialect for bare files finds violations, too."""
    broken = lint_kernels(source, load_profile(dialect))
    return broken and lint_kernels(source, load_profile(ANY_FILE)) and broken
