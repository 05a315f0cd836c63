"""Format the result of `enable verify` for one kernel."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from enable.terminal import coloured
from verify.judging.stages import TrialResult
from verify.judging.standings import marked
from verify.outcome import Outcome

_HEAD, _TAIL = 40, 20  # lines of a report to print


def finding_lines(found: TrialResult, words: Sequence[str]) -> str:
    """Return the lines for one kernel; `words` is the typed command, repeated for the failing case."""
    verdict = coloured(marked(found.outcome, found.independent))
    if found.compile_only and found.outcome is Outcome.PASS:
        verdict = "compiles"
    lines = [f"{found.name}: {verdict}" + (f" [{found.layer}]" if found.layer else "")]
    if found.violations:
        lines += [f"  {line}" for line in found.violations]
    elif found.detail:
        lines.append(f"  {found.detail}")
    lines += [f"  not for {dtype}: {why}" for dtype, why in found.narrower.items()]
    counts = f"  {found.cases} cases run, {found.passed} passed, {found.skipped} skipped"
    if found.compile_only:
        counts = f"  {found.passed} of {found.cases} cases compile, none was run, {found.skipped} skipped"
    lines.append(f"{counts}; on {', '.join(found.overloads) or 'nothing'}; sandbox: {found.sandbox}")
    if found.report:
        lines += ["", textwrap.indent(_excerpt(found.report), "    "), ""]
    if found.reproducer:
        lines.append(f"  again  {shlex.join([*words, '--case', found.reproducer])}")
    return "\n".join(lines)


def _excerpt(report: str) -> str:
    """Return the beginning and end of a long report; a compiler may print thousands of lines."""
    lines = report.split("\n")
    omitted = len(lines) - _HEAD - _TAIL
    return report if omitted <= 1 else "\n".join([*lines[:_HEAD], f"... {omitted} more lines: --json", *lines[-_TAIL:]])
