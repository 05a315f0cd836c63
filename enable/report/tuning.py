"""Searches for speed for the page: the tree of each, with what every candidate was measured at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enable.workspace import Workspace
from generate.journal import NAME, Record, read_journal

MOST_NODES = 200  # of a tree that are drawn


def searches(workspace: Workspace) -> list[dict[str, Any]]:
    """The latest search of each operator. Raises UserError if a journal is damaged."""
    homes = sorted(p for p in (workspace.root / "tune").glob("*") if p.is_dir())
    latest = [max(home.glob("run-[0-9][0-9][0-9]*"), default=None) for home in homes]
    return [_search(run) for run in latest if run is not None and (run / NAME).is_file()]


def _search(run: Path) -> dict[str, Any]:
    records = read_journal(run / NAME, torn=True)
    nodes = [_node(r) for r in records if "ended" in r][:MOST_NODES]
    begun = {r["begun"] for r in records if "begun" in r} - {node["number"] for node in nodes}
    return {
        "overload": records[0]["overload"],
        "run": run.name,
        "device": next((r["measured"]["device"]["name"] for r in records if r.get("measured")), ""),
        "skills": records[0]["switches"]["skills"],
        "nodes": nodes,
        "open": sorted(begun),
    }


def _node(record: Record) -> dict[str, Any]:
    told = record["ended"]
    kept = {name: told[name] for name in ("number", "move", "outcome", "learned", "detail", "calls")}
    numbers = {name: round(told[name], 4) for name in ("reward", "mean")}
    return {**kept, **numbers, "noise": round(told["noise"] - 1, 4), "parents": list(told["parents"])}
