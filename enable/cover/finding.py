"""What `enable verify` says of one kernel, and how it is printed."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from enable.terminal import coloured
from verify.judging.verdicts import marked
from verify.outcome import Outcome

_HEAD, _TAIL = 40, 20  # lines of a report that are shown


@dataclass(frozen=True)
class Finding:
    """What is said of one kernel: PASS only if cases ran and all of them passed.

    cases: how many were judged. independent: of all cases that it is known to have passed, how many differ in more than
    the contents of tensors; None where verdicts on it are not kept with those of the library. seed: of the extended
    ones. reproducer: the case that failed. compile_only: cases were compiled, and none was run.
    narrower: dtypes that ATen takes and a bare file does not, and what it does there. unreached: what no case
    reached of the file, in words.
    """

    name: str
    outcome: Outcome
    layer: str = ""
    rule: str = ""
    detail: str = ""
    cases: int = 0
    passed: int = 0
    skipped: int = 0
    seed: int = 0
    sandbox: str = ""
    overloads: tuple[str, ...] = ()
    reproducer: str = ""
    report: str = ""
    violations: tuple[str, ...] = ()
    independent: int | None = None
    compile_only: bool = False
    narrower: Mapping[str, str] = field(default_factory=dict)
    unreached: tuple[str, ...] = ()


def finding_lines(found: Finding, words: Sequence[str]) -> str:
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
