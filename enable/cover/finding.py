"""Format the result of `enable verify` for one kernel."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from enable.naming import counted
from enable.terminal import coloured
from verify.judging.stages import TrialResult
from verify.judging.standings import marked
from verify.outcome import Outcome

_HEAD, _TAIL = 40, 20  # lines of a report to print


def finding_lines(result: TrialResult, words: Sequence[str]) -> str:
    """Return the lines for one kernel; `words` is the typed command, repeated for the failing case."""
    verdict = coloured(marked(result.outcome, result.independent))
    if result.compile_only and result.outcome is Outcome.PASS:
        verdict = "compiles"
    lines = [f"{result.name}: {verdict}" + (f" [{result.layer}]" if result.layer else "")]
    if result.violations:
        lines += [f"  {line}" for line in result.violations]
    elif result.detail:
        lines.append(f"  {result.detail}")
    lines += [f"  not for {dtype}: {why}" for dtype, why in result.narrower.items()]
    counts = f"  {counted(result.cases, 'case')} run, {result.passed} passed, {result.skipped} skipped"
    if result.compile_only:
        counts = f"  {result.passed} of {counted(result.cases, 'case')} compile, none was run, {result.skipped} skipped"
    lines.append(f"{counts}; on {', '.join(result.overloads) or 'nothing'}; sandbox: {result.sandbox}")
    # the report begins with the detail, which is printed above
    if report := result.report.removeprefix(result.detail).lstrip("\n"):
        lines += ["", textwrap.indent(_excerpt(report), "    "), ""]
    if result.reproducer:
        lines.append(f"  again  {shlex.join([*words, '--case', result.reproducer])}")
    return "\n".join(lines)


def _excerpt(report: str) -> str:
    """Return the beginning and end of a long report; a compiler may print thousands of lines."""
    lines = report.split("\n")
    omitted = len(lines) - _HEAD - _TAIL
    return report if omitted <= 1 else "\n".join([*lines[:_HEAD], f"... {omitted} more lines: --json", *lines[-_TAIL:]])
