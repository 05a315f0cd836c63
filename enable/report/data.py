"""Collect the data of a report; `enable report --json` prints it, and the page is rendered from it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from enable.cover.session import Session
from enable.report.changes import FORMAT, VERSION, changes, earlier
from enable.report.dialogs import campaigns
from enable.report.failures import failures
from enable.report.headline import headlines
from enable.report.overloads import of_platform
from enable.report.performance import performance, speeds
from enable.report.reasons import add_reasons
from enable.report.traces import trace_view
from enable.report.tuning import searches
from enable.workspace import Workspace
from traces import UserError


def report(  # noqa: PLR0913 - one parameter per option
    workspace: Workspace,
    base: Path | None,
    traces: Sequence[str],
    of_campaigns: Sequence[str],
    platforms: Sequence[str],
    benchmarks: Sequence[Path],
    since: Path | None = None,
) -> dict[str, Any]:
    """Judge everything that has no verdict yet, and collect the results.

    Args:
        workspace: The workspace.
        base: Directory of the kernel library, or None for the packaged one.
        traces: Trace names. If neither traces nor campaigns are named, all traces of the workspace are used.
        of_campaigns: Campaign names.
        platforms: Platform names.
        benchmarks: Files with measured speeds.
        since: An earlier report to compare with, or None.

    Returns:
        The report's JSON object.

    Raises:
        UserError: A trace, campaign, platform or file does not exist, or there is nothing to report on.
    """
    earlier_data, speed = earlier(since) if since else None, performance(benchmarks)
    names = list(dict.fromkeys(traces or ([] if of_campaigns else workspace.trace_names())))
    campaign_data = campaigns(workspace, of_campaigns)
    if not names and not of_campaigns:
        record = workspace.command("capture", "nanogpt")
        raise UserError(f"no trace in {workspace.traces} to report on; record one: {record}")
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "versions": {name: version(name) for name in ("enablekit", "torch", "triton")},
        "platforms": [],
        **{key: [] for key in ("models", "missing", "overloads", "opinfo", "failures")},
        "kernels": {},
        "traces": [trace_view(name, workspace.open_trace(name)) for name in names],
        "performance": speed,
        "searches": searches(workspace),
        **campaign_data,
    }
    for platform in dict.fromkeys(platforms) if names else ():
        with Session(workspace, base, platform) as session:
            platform_data = of_platform(session, names)
            failing = [(name, row) for of in platform_data.rows.values() for name, row in of.items() if row.failing]
            data["failures"] += failures(session, failing, data["kernels"])
        data["platforms"].append(platform_data.name)
        for key in ("models", "missing", "overloads", "opinfo"):
            data[key] += getattr(platform_data, key)
    speed_by_overload = speeds(speed)
    for row in data["overloads"]:
        row["speedup"] = speed_by_overload.get(row["overload"])
    data["changes"] = changes(earlier_data, data) if earlier_data else None
    data["headlines"] = headlines(data, earlier_data)
    add_reasons(data)
    return data
