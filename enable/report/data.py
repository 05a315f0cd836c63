"""What a report holds: `enable report --json` prints it, and the page is made of it."""

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
from enable.report.overloads import of_platform
from enable.report.performance import performance, speeds
from enable.report.traces import trace_view
from enable.report.tuning import searches
from enable.workspace import Workspace
from traces import UserError


def report(  # noqa: PLR0913 - one parameter an option
    workspace: Workspace,
    base: Path | None,
    traces: Sequence[str],
    of_campaigns: Sequence[str],
    platforms: Sequence[str],
    benchmarks: Sequence[Path],
    since: Path | None = None,
) -> dict[str, Any]:
    """Judge what was not judged yet, and collect what is known. traces: all of the workspace if neither these nor
    campaigns are named.

    Raises UserError if there is no such trace, campaign, platform or file, or nothing to report on.
    """
    before, speed = earlier(since) if since else None, performance(benchmarks)
    names = list(dict.fromkeys(traces or ([] if of_campaigns else workspace.trace_names())))
    told = campaigns(workspace, of_campaigns)
    if not names and not of_campaigns:
        record = workspace.command("capture", "nanogpt")
        raise UserError(f"no trace in {workspace.traces} to report on; record one: {record}")
    found: dict[str, Any] = {
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
        **told,
    }
    for platform in dict.fromkeys(platforms) if names else ():
        with Session(workspace, base, platform) as session:
            one = of_platform(session, names)
            failing = [(name, row) for of in one.rows.values() for name, row in of.items() if row.failing]
            found["failures"] += failures(session, failing, found["kernels"])
        found["platforms"].append(one.name)
        for key in ("models", "missing", "overloads", "opinfo"):
            found[key] += getattr(one, key)
    against = speeds(speed)
    for row in found["overloads"]:
        row["speed"] = against.get(row["overload"])
    found["changes"] = changes(before, found) if before else None
    return found
