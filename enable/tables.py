"""Format the output of commands: plain tables, and the summaries behind them."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from enable import terminal
from enable.terminal import printable, summary_line

if TYPE_CHECKING:
    from capture.session import Summary
    from enable.cover.coverage import Coverage, Row
    from traces import Report, Trace
    from traces.audit import Audit

OPTIONAL_OF_DIALOGS = ("category", "tokens", "dialogs", "LLM calls", "kernel")  # for dialogs' results
PHASES = ("forward", "loss", "backward", "clip", "optimizer")
NOTHING_TO_COVER = "no operator of this trace needs a kernel: it holds views, memory and transfer alone"
_WIDTH = 96  # cells are cut to this many characters
_COMFORTABLE = 20  # width that a text column keeps while names take over 2/5 of the terminal; narrower, it is dropped
_READABLE = 12  # a text column that may not be dropped keeps this width while optional columns are left
_NARROWEST = 8  # minimum width of a text column, however narrow the terminal is
_BREAKS = re.compile(r"(\s+|(?<=[_/])(?=[^_/])|(?<=::)|(?<=[a-z_]\.)(?=[A-Za-z]))")  # where a cell's line may end


def markdown_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    cells = [map(_text, rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def table(rows: list[dict[str, Any]], optional: Sequence[str] = ()) -> str:
    """Return rows as aligned text: numbers to the right, text to the left.

    The first column identifies a row, so it is never cut; every other cell is limited to 96 characters. On a terminal
    the table is colored and fits the width: empty and optional columns are dropped, and long texts and names wrapped.

    Args:
        rows: Cells by column.
        optional: Columns that a narrow terminal does without, the least important first.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {n for n in names if all(isinstance(r.get(n), int | float) and not isinstance(r[n], bool) for r in rows)}
    cells = {name: [_text(name), *(_text(row.get(name)) for row in rows)] for name in names[:1]}
    cells |= {name: [_text(name), *(_cell(row.get(name)) for row in rows)] for name in names[1:]}
    widths = {name: max(map(len, column)) for name, column in cells.items()}
    empty = [name for name in names[1:] if not any(cells[name][1:])]
    texts = [name for name in names if name not in numeric]
    columns = terminal.width(sys.stdout)
    if names and columns is not None:
        _fit(widths, texts, empty, [name for name in optional if name in names[1:]], columns)
    omitted = [name for name in names if name not in widths and name not in empty]
    lines = []
    for i in range(len(rows) + 1):
        wrapped = [_wrap(cells[name][i], width, name == names[0]) for name, width in widths.items()]
        for parts in zip_longest(*(column or [""] for column in wrapped), fillvalue=""):
            padded = (
                part.rjust(width) if name in numeric else terminal.coloured(part.ljust(width))
                for part, (name, width) in zip(parts, widths.items(), strict=True)
            )
            lines.append("  ".join(padded).rstrip())
    if omitted:
        lines += textwrap.wrap(f"columns omitted at this width: {', '.join(omitted)}", columns or _WIDTH)
    return "\n".join(lines)


def _fit(widths: dict[str, int], texts: list[str], empty: list[str], optional: list[str], columns: int) -> None:
    """Drop empty and optional columns, then narrow text columns, the widest first, until the table fits."""
    first = next(iter(widths))

    def excess(least: Mapping[str, int]) -> int:
        return sum(min(width, least.get(name, width)) + 2 for name, width in widths.items()) - 2 - columns

    def narrow(names: Iterable[str], least: int) -> None:
        wide = [name for name in names if widths.get(name, 0) > least]
        for _ in range(excess({}) if wide else 0):
            widest = max(wide, key=widths.__getitem__)
            widths[widest] = max(widths[widest] - 1, least)

    details = [name for name in texts if name != first]
    readable_name = columns * 2 // 5
    least = {name: _COMFORTABLE if name in optional else _READABLE for name in texts} | {first: readable_name}
    for names, kept in ((empty, {}), (optional, least)):
        for name in names:
            if excess(kept) > 0:
                widths.pop(name, None)
    narrow(details, _COMFORTABLE)
    narrow([first], readable_name)
    narrow(details, _READABLE)
    narrow(texts, _NARROWEST)


def _wrap(text: str, width: int, is_name: bool) -> list[str]:
    """Break a text into lines, after spaces or the separators of names; the next lines of a name are indented."""
    wrapper = textwrap.TextWrapper(width, subsequent_indent="  " if is_name else "")
    wrapper.wordsep_re = _BREAKS
    return [text] if len(text) <= width else wrapper.wrap(text)


def _cut(text: str, columns: int) -> str:
    """Cut a text with an ellipsis."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def _text(value: Any) -> str:
    """Return a value as one printable line; None and NaN become empty."""
    return "" if value is None or value != value else printable(str(value))


def _cell(value: Any) -> str:
    """Return a value as text that is cut to the width of a cell."""
    return _cut(_text(value), _WIDTH)


def size(nbytes: float) -> str:
    """Return a number of bytes in the unit that gives one to four digits before the decimal point."""
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} GiB"


def coverage_tables(coverage: Coverage, missing: str, next_: str, stronger: Callable[[str], str]) -> str:
    """Return the table of overloads that need a kernel, and the summary below it.

    Args:
        coverage: The coverage.
        missing: Command that lists the missing overloads.
        next_: Command that repairs the failing overloads.
        stronger: Returns the command that tries a kernel on more cases, for an overload.
    """
    from enable.cover.coverage import (
        NO_KERNEL,  # imported late, because `enable capture` imports this module into a user's process
    )
    from verify.judging.standings import ENOUGH, FEW_CASES

    rows = [
        {
            "overload": r.overload,
            "calls": r.calls,
            "cases": r.cases,
            "outcome": r.state if r.needs_kernel else "-",
            "evidence": r.evidence or "-",
            "kernel": kernel_cell(r),
            "detail": "; ".join(
                filter(None, ["for CPUs alone" if r.of_cpus else "", "" if r.state == NO_KERNEL else r.detail])
            ),
        }
        for r in coverage.rows
        if r.needs_kernel or r.kind == "random"
    ]
    platform = [r for r in coverage.rows if r.kind in ("view", "memory")]
    moved = sum(r.calls for r in platform)
    summary = coverage.as_json()
    overloads, calls = summary["overloads"], summary["calls"]
    lines = [
        table(rows, optional=("kernel", "cases", "calls", "evidence")),
        "",
        f"{coverage.title} on {coverage.platform}",
        f"  the platform's     {len(platform)} overloads, {moved} calls: views, memory, transfer",
        f"  overloads covered  {overloads['covered']} of {overloads['compute']} that need a kernel{share(overloads)}",
        f"  calls covered      {calls['covered']} of {calls['total']} calls of these{share(calls)}",
    ]
    if coverage.of_cpus:
        on_cpus = "{overloads} overloads, {calls} calls".format_map(summary["of_cpus"])
        lines += [
            f"  for CPUs alone     {on_cpus} of these: PyTorch calls them on a CPU only",
            f"  on an accelerator  {coverage.instead}",
        ]
    if coverage.host:
        lines.append(f"  on the host        {named_counts(coverage.host)}: not work for the device, and not counted")
    if not coverage.compute:
        lines.append(f"  {NOTHING_TO_COVER}")
    refined = sum(r.refined for r in coverage.compute if r.covered)
    if refined:
        lines.append(
            f"  refined            {refined} of the covered overloads, by kernels that this workspace accepted"
        )
    weak = [r.overload for r in coverage.compute if r.evidence == FEW_CASES]
    if weak:
        lines.append(
            f"  few cases          {len(weak)} passes rest on fewer than {ENOUGH} independent cases; {ENOUGH} make the"
            f" evidence strong: {stronger(weak[0])}"
        )
    failing = coverage.failing()
    lines += _not_in_the_dialect(coverage.lost)
    lines += [f"  to see what fails  {r.again}" for r in failing if r.again]
    if failing:
        lines += [f"  what is missing    {missing}", f"  next               {next_}"]
    return "\n".join([lines[0], *map(summary_line, lines[1:])])


def _not_in_the_dialect(lost: Mapping[str, int]) -> list[str]:
    """Return lines with the overloads that each lack of the platform's dialect costs, and each of its limits."""
    counts = [f"{lack}: {number} overload{'' if number == 1 else 's'}" for lack, number in lost.items()]
    limits = [count.removeprefix("limit ") for count in counts if count.startswith("limit ")]
    names = [count for count in counts if not count.startswith("limit ")]
    lines = [f"  not in the dialect {'; '.join(names)}"] if names else []
    return lines + ([f"  beyond a limit     {'; '.join(limits)}"] if limits else [])


def named_counts(calls: Mapping[str, int]) -> str:
    """Return the total number of calls with the number for each overload."""
    by_overload = ", ".join(f"{overload} {n}" for overload, n in calls.items())
    return f"{sum(calls.values())} calls ({by_overload})"


def share(counts: dict[str, Any]) -> str:
    """Return the percentage in parentheses, or "" if there is none."""
    return "" if counts["percent"] is None else f" ({counts['percent']} %)"


def capture_summary(model: str, summary: Summary) -> dict[str, Any]:
    """Return the object that `enable capture --json` prints."""
    return {
        "model": model,
        "trace": str(summary.path),
        "calls": summary.calls,
        "stored": summary.stored,
        "overloads": summary.overloads,
        "computing": summary.computing,
        "signatures": summary.signatures,
        "levels": summary.levels,
        "bytes": summary.nbytes,
        "seconds": round(summary.seconds, 3),
        "peak_bytes": summary.peak,
        "device_peak_bytes": summary.device_peak,
        "losses": summary.losses,
        "errors": summary.errors,
    }


def capture_lines(stats: dict[str, Any], next_: str) -> str:
    """Return the recorded counts, the trace's path, and the next command."""
    levels = ", ".join(f"{count} {level}" for level, count in stats["levels"].items() if count)
    device = f", {size(stats['device_peak_bytes'])} on the GPU" if stats["device_peak_bytes"] is not None else ""
    lines = [
        f"{stats['model']}: {stats['calls']} calls of {stats['overloads']} overloads, {stats['signatures']} signatures",
        f"  stored  {stats['stored']} calls{levels and f' ({levels})'}, {size(stats['bytes'])} in {stats['trace']}",
        f"  memory  {size(stats['peak_bytes'])} at most{device}",
    ]
    if stats["losses"]:
        lines.append(f"  loss    {', '.join(f'{loss:.4f}' for loss in stats['losses'])}")
    if not stats["computing"]:
        lines.append(f"  {NOTHING_TO_COVER}")
    return "\n".join(map(summary_line, [*lines, f"  next    {next_}"]))


def kernel_cell(row: Row) -> str:
    """Return an overload's kernel file for a table."""
    path = "/".join(Path(row.kernel).parts[-2:]) if row.kernel else "-"  # group and file, the same in every layer
    return f"{path} ({row.origin})" if row.refined else path


def refinement_lines(operators: list[dict[str, Any]]) -> str:
    """Return how each operator ended."""
    if not operators:
        return "nothing to refine: every recorded ATen overload that needs a kernel is covered"
    columns = {"overload": "overload", "exit": "exit", "dialogs": "dialogs", "calls": "LLM calls", "kernel": "kernel"}
    lines = [table([{shown: row[key] for key, shown in columns.items()} for row in operators], OPTIONAL_OF_DIALOGS)]
    for row in operators:
        if row["exit"] not in ("PASSED", "ABORTED", "NOT_BEGUN"):  # errors explain these on stderr
            lines.append(summary_line(f"{row['overload']}: {row['detail']}"))
    passed = sum(row["exit"] == "PASSED" for row in operators)
    return "\n".join([*lines, f"{passed} of {len(operators)} operators passed"])


def verify_summary(model: str, trace: Trace, report: Report) -> dict[str, Any]:
    """Return the object that `enable trace verify --json` prints."""
    return {
        "model": model,
        "trace": str(trace.path),
        "exact": report.exact,
        "metadata": report.metadata,
        "close": report.close,
        "synthesised": report.synthesised,
        "not_recorded": report.not_recorded,
        "blobs": report.blobs,
        "damage": trace.damage,
        "not_comparable": dict(report.not_comparable),
        "mismatches": [vars(m) for m in report.mismatches],
        "passed": report.passed,
    }


def verify_tables(summary: dict[str, Any]) -> str:
    """Return the counts, and each call that differs."""
    counts = {
        "close": "recorded on another device than the CPU, like it within tolerance",
        "synthesised": "with synthesised contents, equal in shapes, strides and dtypes",
        "not_recorded": "without recorded values, not replayed",
    }
    lines = [
        f"{summary['blobs']} spans of bytes match their hashes",
        f"{summary['exact']} stored calls bit-exact, {summary['metadata']} views and allocations with equal metadata",
        *(f"{summary[name]} {text}" for name, text in counts.items() if summary[name]),
        *(f"{count} not comparable: {reason}" for reason, count in summary["not_comparable"].items()),
        *(f"damaged: {line}" for line in summary["damage"]),
    ]
    lines = [summary_line(line) for line in lines]
    if summary["mismatches"]:
        lines += [f"{len(summary['mismatches'])} DIFFER:", table(summary["mismatches"])]
    elif summary["exact"] and not (summary["close"] or summary["synthesised"]):
        lines.append("every comparable call is bit-exact")
    else:
        lines.append("no comparable call differs")
    return "\n".join(lines)


def audit_lines(audit: Audit) -> str:
    """Return the texts to review, then the violations."""
    lines = [f"{where}: {text}" for where, texts in audit.texts.items() for text in texts]
    if audit.windows is not None:
        lines.append(f"{audit.windows} windows of 8 bytes of the other trace's contents were looked for")
    lines += [f"VIOLATION {line}" for line in audit.violations]
    lines = [printable(line) for line in lines]
    return "\n".join(lines if audit.violations else [*lines, "no user bytes found; the text above is all that remains"])
