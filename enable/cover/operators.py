"""List the overloads in kernel files with their verdicts on each platform.

Verdicts come from the workspace, and from a results file that records a run over the whole library.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from enable.naming import shown_path
from enable.trust import UNTRIED, untried
from enable.workspace import Workspace
from generate.kernel_library import Match
from traces import UserError
from traces.format import write_durably
from traces.program import program_name
from verify import platforms
from verify.judging.standings import is_few


def operators(workspace: Workspace, base: Path | None) -> list[dict[str, Any]]:
    """Return a row for each overload in a kernel file: dtypes, file, and counts by platform.

    The counts are those of the current kernel and judge: passed cases, judged cases, independent cases, and the
    variants that Triton compiles for them.
    """
    library = workspace.library(base)
    store = workspace.verdicts()
    try:
        standings_by_platform = {name: store.standings(platforms.load(name)) for name in platforms.names()}
    finally:
        store.close()
    rows = []
    for overload in sorted({o for kernel in library for o in kernel.overloads}):
        match = library.match(overload)
        assert match is not None
        row: dict[str, Any] = {"overload": overload, "dtypes": " ".join(match.kernel.dtypes)}
        for name, standings in standings_by_platform.items():
            standing = standings[match.kernels, overload]
            counts = {
                "judged": standing.judged,
                "independent": standing.independent,
                "variants": len(standing.variants),
            }
            row[name] = {"passed": len(standing.passed), **counts}
            if untried(match, standings):
                row[name]["untried"] = True
        rows.append({**row, "kernel": shown_path(match.kernel.path)})
    return rows


def record(workspace: Workspace, base: Path | None, file: Path) -> int:
    """Write the workspace's verdicts to a results file and return the number of recorded rows.

    The file's entries for other overloads and platforms stay.

    Raises:
        UserError: The file is not a results file.
    """
    results = read_results(file) if file.exists() else {}
    library, recorded = workspace.library(base), 0
    for row in operators(workspace, base):
        match = library.match(row["overload"])
        assert match is not None
        for name in platforms.names():
            if row[name]["judged"]:
                figures = {"sources": sources(match), **row[name]}
                results.setdefault(row["overload"], {})[name] = figures
                recorded += 1
    lines = [f"  {json.dumps(o)}: {json.dumps(results[o], sort_keys=True)}" for o in sorted(results)]
    write_durably(file, [("{\n" + ",\n".join(lines) + "\n}\n").encode()])
    return recorded


def with_results(
    rows: list[dict[str, Any]], workspace: Workspace, base: Path | None, file: Path
) -> list[dict[str, Any]]:
    """Return the rows, completed from a results file if the workspace has no verdict.

    `stale` marks results of other kernel versions.
    """
    results, library = read_results(file), workspace.library(base)
    completed = []
    for row in rows:
        match = library.match(row["overload"])
        assert match is not None
        from_file = {
            name: {**figures, "stale": figures["sources"] != sources(match)}
            for name, figures in results.get(row["overload"], {}).items()
            if name in row and not row[name]["judged"]
        }
        completed.append({**row, **from_file})
    return completed


def read_results(file: Path) -> dict[str, dict[str, Any]]:
    """Return `sources`, passed, judged and independent counts by overload and platform.

    Raises:
        UserError: The file is not a results file.
    """
    try:
        results: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        if not all(
            "sources" in figures for figures_by_platform in results.values() for figures in figures_by_platform.values()
        ):
            raise ValueError("a row names no sources")
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(
            f"{file}: no results of a library ({error}); write some: {program_name()} library record FILE"
        ) from error
    return results


def sources(match: Match) -> str:
    """Return a digest of the kernel files that serve an overload."""
    return hashlib.sha256("\n".join(match.kernels[1:]).encode()).hexdigest()[:12]


def cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows for a table, without platforms on which nothing was judged."""
    names = [name for name in platforms.names() if any(row[name]["judged"] for row in rows)]
    return [
        {
            "overload": row["overload"],
            "dtypes": row["dtypes"],
            **{n: _cell(row[n]) for n in names},
            "kernel": row["kernel"],
        }
        for row in rows
    ]


def _cell(known: dict[str, Any]) -> str:
    """Return a platform's cell."""
    if not known["judged"]:
        return "-"
    few_note = " (few)" if is_few(known["independent"]) else ""
    stale = ", of an earlier kernel" if known.get("stale") else ""
    tried = f", {UNTRIED}" if known.get("untried") else ""
    return f"{known['passed']} of {known['judged']}{few_note}{stale}{tried}"
