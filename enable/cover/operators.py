"""The overloads that kernel files list, and what is known of each on each platform: of the workspace's verdicts, and of
what was put down in a file of results when the whole library was judged."""

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
from verify import platforms
from verify.judging.standings import is_few


def operators(workspace: Workspace, base: Path | None) -> list[dict[str, Any]]:
    """A row for each overload that a kernel file lists: its dtypes, its file, and by platform how many cases passed of
    those that were judged with the present kernel and judge, and how many variants Triton compiles for these."""
    library = workspace.library(base)
    store = workspace.verdicts()
    try:
        known = {name: store.standings(platforms.load(name)) for name in platforms.names()}
    finally:
        store.close()
    rows = []
    for overload in sorted({o for kernel in library for o in kernel.overloads}):
        match = library.match(overload)
        assert match is not None
        row: dict[str, Any] = {"overload": overload, "dtypes": " ".join(match.kernel.dtypes)}
        for name, standings in known.items():
            found = standings[match.kernels, overload]
            counts = {"judged": found.judged, "independent": found.independent, "variants": len(found.variants)}
            row[name] = {"passed": len(found.passed), **counts}
            if untried(match, standings):
                row[name]["untried"] = True
        rows.append({**row, "kernel": shown_path(match.kernel.path)})
    return rows


def record(workspace: Workspace, base: Path | None, file: Path) -> int:
    """Put down what the workspace's verdicts say in a file of results, and return of how many rows.

    What is known there of other overloads and platforms stays. Raises UserError for a file that is none.
    """
    known = read_results(file) if file.exists() else {}
    library, recorded = workspace.library(base), 0
    for row in operators(workspace, base):
        match = library.match(row["overload"])
        assert match is not None
        for name in platforms.names():
            if row[name]["judged"]:
                told = {"sources": sources(match), **row[name]}
                known.setdefault(row["overload"], {})[name] = told
                recorded += 1
    lines = [f"  {json.dumps(o)}: {json.dumps(known[o], sort_keys=True)}" for o in sorted(known)]
    write_durably(file, [("{\n" + ",\n".join(lines) + "\n}\n").encode()])
    return recorded


def with_results(
    rows: list[dict[str, Any]], workspace: Workspace, base: Path | None, file: Path
) -> list[dict[str, Any]]:
    """The rows with what a file of results says where the workspace says nothing; `stale`: of other kernels."""
    known, library = read_results(file), workspace.library(base)
    found = []
    for row in rows:
        match = library.match(row["overload"])
        assert match is not None
        told = {
            name: {**figures, "stale": figures["sources"] != sources(match)}
            for name, figures in known.get(row["overload"], {}).items()
            if name in row and not row[name]["judged"]
        }
        found.append({**row, **told})
    return found


def read_results(file: Path) -> dict[str, dict[str, Any]]:
    """Of each overload, by platform: `sources`, passed, judged, independent. Raises UserError for another file."""
    try:
        found: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        if not all("sources" in figures for told in found.values() for figures in told.values()):
            raise ValueError("a row names no sources")
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: no results of a library ({error}); write some: enable library record FILE") from error
    return found


def sources(match: Match) -> str:
    """Which kernel files answer for an overload: a digest of their keys."""
    return hashlib.sha256("\n".join(match.kernels[1:]).encode()).hexdigest()[:12]


def cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for a table: platforms on which nothing was judged are left out."""
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
    if not known["judged"]:
        return "-"
    few = " (few)" if is_few(known["independent"]) else ""
    stale = ", of an earlier kernel" if known.get("stale") else ""
    tried = f", {UNTRIED}" if known.get("untried") else ""
    return f"{known['passed']} of {known['judged']}{few}{stale}{tried}"
