"""Format the output of `enable generate` and `enable campaign`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from enable.campaigns.campaign import summary
from enable.campaigns.work import CampaignDirectory
from enable.tables import OPTIONAL_OF_DIALOGS, table
from enable.workspace import Workspace
from generate.campaign import flattened
from traces.program import program_name

_SHOWN = 40  # maximum number of operators in a printed plan


def plan_lines(plan: dict[str, Any]) -> str:
    """Return a plan as text: the settings that have a value, the operators, and their count by category."""
    settings, rows = plan["settings"], plan["operators"]
    lines = [f"campaign {settings['name']}"]
    lines += [
        f"  {name:<22} {value}" for name, value in flattened(settings) if name != "name" and value not in (None, "", [])
    ]
    listed = [{**row, "kernel": row["kernel"] or "-", "exit": row["exit"] or "-"} for row in rows[:_SHOWN]]
    if listed:
        lines += ["", table(listed, ("kernel", "category"))]
    if len(rows) > _SHOWN:
        lines.append(f"... and {len(rows) - _SHOWN} more; --json lists all")
    categories = Counter(row["category"] for row in rows)
    category_counts = ", ".join(f"{n} {category}" for category, n in categories.most_common())
    lines += ["", f"{len(rows)} operators ({category_counts})" if rows else "0 operators: there is nothing to do"]
    return "\n".join(lines)


def campaign_lines(result: dict[str, Any], next_: str) -> str:
    """Return the result for each operator, the totals, and the next command to type."""
    columns = {"overload": "overload", "category": "category", "exit": "exit", "dialogs": "dialogs"}
    columns |= {"calls": "LLM calls", "tokens": "tokens", "kernel": "kernel"}
    rows = [{shown: row[key] for key, shown in columns.items()} for row in result["operators"]]
    lines = [table(rows, OPTIONAL_OF_DIALOGS)] if rows else []
    lines += [f"{r['overload']}: {r['detail']}" for r in result["operators"] if r["exit"] != "PASSED"]
    exits = ", ".join(f"{n} {exit}" for exit, n in result["exits"].items()) or "nothing to do"
    spent = f"{result['calls']} LLM calls, {result['tokens']} tokens"
    lines.append(f"{result['campaign']}: {result['total']} operators: {exits}; {spent}")
    return "\n".join([*lines, f"  next  {next_}"])


def listed(workspace: Workspace) -> list[dict[str, Any]]:
    """Return one row per campaign, sorted by name."""
    rows = []
    for path in sorted(p for p in (workspace.root / "campaigns").glob("*") if p.is_dir()):
        directory = CampaignDirectory(path)
        state = directory.begun()
        if state is not None:
            totals = summary(path.name, state, directory.results())
            exits = ", ".join(f"{n} {exit}" for exit, n in totals["exits"].items())
            rows.append({"campaign": path.name, "operators": totals["total"], "exits": exits, "calls": totals["calls"]})
    return rows


def list_lines(rows: list[dict[str, Any]]) -> str:
    """Return the table for `enable campaign list`."""
    return table(rows) if rows else f"no campaign here yet; to begin one, see: {program_name()} generate --help"


def report_lines(report: dict[str, Any]) -> str:
    """Return a report as tables with headings."""
    campaigns = report["campaigns"]
    parts = [table([_campaign_row(one) for one in campaigns], ("seconds", "tokens", "a passed operator", "model"))]
    if report["differing"]:
        rows = [{"setting": k, **_columns(campaigns, map(str, values))} for k, values in report["differing"].items()]
        parts.append("Settings that differ\n" + table(rows))
    categories = sorted({c for one in campaigns for c in one["categories"]})
    rows = [
        {"category": c, **_columns(campaigns, (_share(one["categories"].get(c)) for one in campaigns))}
        for c in categories
    ]
    parts.append("Passed, by category\n" + table(rows))
    steps = sorted({n for one in campaigns for n in one["passed_within_calls"]})
    rows = [
        {"LLM calls": n, **_columns(campaigns, (_within(one["passed_within_calls"], n) for one in campaigns))}
        for n in steps
    ]
    if rows:
        parts.append("Passed within so many LLM calls\n" + table(rows))
    rows = [
        {"campaign": one["campaign"], "feedback": kind, **n} for one in campaigns for kind, n in one["feedback"].items()
    ]
    if rows:
        parts.append("Feedback, and the answers that followed\n" + table(rows))
    if report["causes"]:
        rows = [
            {"operators": len(c["operators"]), "cause": c["cause"], "such as": ", ".join(c["operators"][:3])}
            for c in report["causes"]
        ]
        parts.append("What the last answer failed by\n" + table(rows, ("such as",)))
    passed, left = (len(report["union"][name]) for name in ("passed", "left"))
    parts.append(f"Together: {passed} of {passed + left} operators passed in at least one campaign")
    return "\n\n".join(parts)


def _campaign_row(one: dict[str, Any]) -> dict[str, Any]:
    """Return one campaign's row in the first table."""
    return {
        "campaign": one["campaign"],
        "model": one["model"],
        "passed": f"{one['passed']} of {one['total']} ({one['percent']} %)",
        "LLM calls": one["calls"],
        "a passed operator": "-" if one["calls_of_passed"] is None else f"{one['calls_of_passed']:g} calls",
        "tokens": one["tokens"],
        "seconds": f"{one['seconds']['model']:.0f} model, {one['seconds']['tests']:.0f} tests",
    }


def _columns(campaigns: list[dict[str, Any]], values: Iterable[str]) -> dict[str, str]:
    """Return values keyed by campaign name, for one row."""
    return dict(zip((one["campaign"] for one in campaigns), values, strict=True))


def _share(category: dict[str, int] | None) -> str:
    """Return "PASSED of TOTAL" for a category; '-' if the campaign does not have it."""
    return f"{category['passed']} of {category['total']}" if category else "-"


def _within(percent: dict[int, float], calls: int) -> str:
    """Return the percentage that passed within `calls` calls.

    If no entry exists for `calls`, use the entry for the next smaller number; '-' if there is none.
    """
    known = [n for n in percent if n <= calls]
    return f"{percent[max(known)]} %" if known else "-"
