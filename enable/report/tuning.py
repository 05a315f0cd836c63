"""Prepare the searches of `enable tune` for the page: each search tree with the candidates' measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enable.workspace import Workspace
from generate.journal import NAME, Record, read_journal, runs_of

MOST_NODES = 200  # nodes drawn per tree


def searches(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the latest search for each operator. Raise UserError if a journal is damaged."""
    homes = sorted(p for p in (workspace.root / "tune").glob("*") if p.is_dir())
    latest = [runs[-1] for home in homes if (runs := runs_of(home))]
    return [_search(run) for run in latest if (run / NAME).is_file()]


def _search(run: Path) -> dict[str, Any]:
    """Return one search with its nodes."""
    records = read_journal(run / NAME, torn=True)
    nodes = [_node(r) for r in records if "ended" in r]
    unfinished = {r["begun"] for r in records if "begun" in r} - {node["number"] for node in nodes}
    return {
        "overload": records[0]["overload"],
        "run": run.name,
        "device": next((r["measured"]["device"]["name"] for r in records if r.get("measured")), ""),
        "skills": records[0]["switches"]["skills"],
        "nodes": nodes[:MOST_NODES],
        "open": sorted(unfinished),
    }


def _node(record: Record) -> dict[str, Any]:
    """Return a candidate's measurements for the page."""
    ended = record["ended"]
    fields = {name: ended[name] for name in ("number", "move", "learned", "detail", "calls")}
    numbers = {name: round(ended[name], 4) for name in ("reward", "mean")}
    return {
        "state": ended["outcome"],
        **fields,
        **numbers,
        "noise": round(ended["noise"] - 1, 4),
        "parents": list(ended["parents"]),
    }
