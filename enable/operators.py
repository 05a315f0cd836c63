"""The overloads that kernel files list, and what the workspace's verdicts say of each on each platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enable.coverage import shown_path
from enable.library import CONDITIONS, kernels_of
from enable.workspace import Workspace
from verify import platforms


def operators(workspace: Workspace, base: Path | None) -> list[dict[str, Any]]:
    """A row for each overload that a kernel file lists: its dtypes, its file, and by platform how many cases passed of
    those that were judged with the present kernel and judge."""
    library = workspace.library(base)
    store = workspace.verdicts()
    try:
        counts = {name: store.counts(platforms.load(name), CONDITIONS) for name in platforms.names()}
    finally:
        store.close()
    found = []
    for overload in sorted({o for kernel in library for o in kernel.overloads}):
        match = library.match(overload)
        assert match is not None
        row: dict[str, Any] = {"overload": overload, "dtypes": " ".join(match.kernel.dtypes)}
        for name, judged in counts.items():
            passed, total = judged.get((kernels_of(match), overload), (0, 0))
            row[name] = {"passed": passed, "judged": total}
        found.append({**row, "kernel": shown_path(match.kernel.path)})
    return found


def cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for a table: platforms on which nothing was judged are left out."""
    names = [name for name in platforms.names() if any(row[name]["judged"] for row in rows)]
    return [
        {
            "overload": row["overload"],
            "dtypes": row["dtypes"],
            **{n: f"{row[n]['passed']} of {row[n]['judged']}" if row[n]["judged"] else "-" for n in names},
            "kernel": row["kernel"],
        }
        for row in rows
    ]
