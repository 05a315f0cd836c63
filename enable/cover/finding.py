"""What `enable verify` says of one kernel, and how it is printed."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from enable.terminal import coloured
from verify.judging.stages import TrialResult
from verify.judging.standings import marked
from verify.outcome import Outcome

_HEAD, _TAIL = 40, 20  # lines of a report that are shown


def finding_lines(found: TrialResult, words: Sequence[str]) -> str:
    """What is told of one kernel. words: the command that was typed, to be typed again for the case that failed."""
    verdict = coloured(marked(found.outcome, found.independent))
    if found.compile_only and found.outcome is Outcome.PASS:
        verdict = "compiles"
    lines = [f"{found.name}: {verdict}" + (f" [{found.layer}]" if found.layer else "")]
    if found.violations:
        lines += [f"  {line}" for line in found.violations]
    elif found.detail:
        lines.append(f"  {found.detail}")
    lines += [f"  not for {dtype}: {why}" for dtype, why in found.narrower.items()]
    told = f"  {found.cases} cases run, {found.passed} passed, {found.skipped} skipped"
    if found.compile_only:
        told = f"  {found.passed} of {found.cases} cases compile, none was run, {found.skipped} skipped"
    lines.append(f"{told}; on {', '.join(found.overloads) or 'nothing'}; sandbox: {found.sandbox}")
    if found.report:
        lines += ["", textwrap.indent(_excerpt(found.report), "    "), ""]
    if found.reproducer:
        lines.append(f"  again  {shlex.join([*words, '--case', found.reproducer])}")
    return "\n".join(lines)


def _excerpt(report: str) -> str:
    """The beginning and the end of what is too long to be read: a compiler may say thousands of lines."""
    lines = report.split("\n")
    left = len(lines) - _HEAD - _TAIL
    return report if left <= 1 else "\n".join([*lines[:_HEAD], f"... {left} more lines: --json", *lines[-_TAIL:]])
