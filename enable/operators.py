"""The overloads that kernel files list, and what the workspace's verdicts say of each on each platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enable.coverage import shown_path
from enable.workspace import Workspace
from verify import platforms
from verify.verdicts import is_few


def operators(workspace: Workspace, base: Path | None) -> list[dict[str, Any]]:
    """A row for each overload that a kernel file lists: its dtypes, its file, and by platform how many cases passed of
    those that were judged with the present kernel and judge."""
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
            row[name] = {"passed": len(found.passed), "judged": found.judged, "independent": found.independent}
        rows.append({**row, "kernel": shown_path(match.kernel.path)})
    return rows


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


def _cell(known: dict[str, int]) -> str:
    if not known["judged"]:
        return "-"
    few = " (few)" if is_few(known["independent"]) else ""
    return f"{known['passed']} of {known['judged']}{few}"
