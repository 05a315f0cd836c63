"""Profile a kernel with NVIDIA's ncu: its share of the memory bandwidth, and the reasons why its warps stall."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from traces import UserError

METRICS = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "of the memory's bandwidth",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "of the cycles issue an instruction",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": "cycles a warp waits for memory",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": "cycles a warp waits at barriers",
}
ABSENT = "No profiler was asked what warps wait for: ncu is not on PATH."


def profiled(run: Callable[[Sequence[str]], Any]) -> str:
    """Return a line for each kernel of one call.

    `run` makes the call in a process whose command line begins with the given words.
    """
    if shutil.which("ncu") is None:
        return ABSENT
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "ncu.csv"
        words = ["ncu", "--csv", "--log-file", str(log), "--metrics", ",".join(METRICS), "--launch-count", "40"]
        try:
            run(words)
        except UserError as error:
            return f"ncu could not profile it: {error}"
        return "\n".join(lines(log.read_text(encoding="utf-8") if log.exists() else "")) or "ncu told nothing of it."


def lines(text: str) -> list[str]:
    """Return one line per kernel in ncu's table, without PyTorch's own kernels."""
    start = text.find('"ID"')
    metrics_by_kernel: dict[str, list[str]] = {}
    for row in csv.DictReader(io.StringIO(text[start:])) if start >= 0 else ():
        if "at::" not in row["Kernel Name"]:
            metric = f"{row['Metric Value']} {row['Metric Unit']} {METRICS.get(row['Metric Name'], row['Metric Name'])}"
            metrics_by_kernel.setdefault(row["Kernel Name"], []).append(" ".join(metric.split()))
    return [f"ncu: {kernel}: {', '.join(metrics)}" for kernel, metrics in metrics_by_kernel.items()]
