"""Implement `enable capture opinfo`: record once per torch version, and summarize the trace."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch

from capture.opinfo import DTYPES, SampleRequest, names, record_apart
from enable.cover.opinfo import opinfo_of
from enable.progress import show_progress
from enable.workspace import Workspace
from traces import UserError
from traces.errors import choose_from
from traces.store import Trace


def capture_opinfo(
    workspace: Path, path: Path, in_workspace: bool, operators: list[str], dtypes: list[str], all_: bool, force: bool
) -> dict[str, Any]:
    """Return the object that `enable capture opinfo --json` prints; record the trace first if necessary.

    Raises:
        UserError: A name is unknown, or the path is in use.
    """
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise UserError(f"unknown dtype {dtype!r}{choose_from(dtype, DTYPES)}")
    home = Workspace(workspace)
    path = home.trace_path(str(path)) if in_workspace else path
    request = SampleRequest(os.fspath(path), tuple(sorted(set(operators))), tuple(dtypes) or DTYPES, all_, force)
    began = time.monotonic()
    recorded = False if force else _is_there(path, request)
    if not recorded:
        if in_workspace:
            home.create()
        _record(request)
    return {**summary(path), "seconds": round(time.monotonic() - began, 1), "recorded_before": recorded}


def _record(request: SampleRequest) -> None:
    """Record the samples, with progress by operator."""
    operators = list(request.operators) or names()
    with show_progress("capture opinfo", len(operators)) as work:
        started: set[str] = set()

        def began(operator: str) -> None:
            if operator not in started and not operator.startswith("error "):
                if started:
                    work.step()
                started.add(operator)
                work.note = operator

        record_apart(request, began)


def _is_there(path: Path, request: SampleRequest) -> bool:
    """Return True if a complete trace for the same request and torch version exists."""
    if not path.is_dir():
        return False
    try:
        trace = Trace.open(path)
    except UserError:
        return False
    info = opinfo_of(trace)
    is_same_request = isinstance(info, dict) and info.get("filters") == request.filters
    return is_same_request and trace.manifest.get("versions", {}).get("torch") == torch.__version__


def summary(path: Path) -> dict[str, Any]:
    """Return the counts of an OpInfo trace, with the reasons why samples and operators were not recorded."""
    trace = Trace.open(path)
    info = trace.manifest["info"]["opinfo"]
    overloads: dict[str, set[str]] = defaultdict(set)
    for signature in trace.signatures.values():
        for phase in signature.phases if signature.kind == "compute" else ():
            overloads[phase].add(signature.overload)
    reasons = Counter(reason for group in info["groups"] for reason in group["failed"].values())
    excluded: dict[str, list[str]] = defaultdict(list)
    for operator, reason in info["excluded"].items():
        excluded[reason].append(operator)
    return {
        "trace": str(path),
        "operators": len({group["operator"] for group in info["groups"]}),
        "samples": sum(group["samples"] for group in info["groups"]),
        "backward": sum(group["backward"] for group in info["groups"]),
        "calls": sum(s.calls for s in trace.signatures.values()),
        "overloads": {
            "forward": len(overloads["forward"]),
            "backward_only": len(overloads["backward"] - overloads["forward"]),
        },
        "bytes": sum(file.stat().st_size for file in path.iterdir()),
        "failed_samples": dict(reasons.most_common()),
        "excluded": dict(excluded),
    }


def opinfo_lines(stats: dict[str, Any], next_: str) -> str:
    """Return the summary as text; `next_` is the suggested command."""
    from enable.tables import size

    failed, before = stats["failed_samples"], stats["recorded_before"]
    overloads = stats["overloads"]
    lines = [
        f"{stats['trace']}  {'recorded before with this torch' if before else f'''recorded in {stats['seconds']} s'''},"
        f" {size(stats['bytes'])}",
        f"  operators  {stats['operators']}, {stats['samples']} samples, {stats['backward']} with a backward pass",
        f"  calls      {stats['calls']}; {overloads['forward']} overloads forward, {overloads['backward_only']} more"
        " backward",
        f"  failed     {sum(failed.values())} samples",
        *(f"    {count:5}  {reason[:110]}" for reason, count in list(failed.items())[:10]),
    ]
    for reason, operators in stats["excluded"].items():
        lines.append(f"  left out   {len(operators)} ({reason}): {', '.join(operators[:4])}")
    lines.append(f"  next       {next_}")
    return "\n".join(lines)
