"""Read speeds that `python -m benchmarks.operators --json FILE` wrote, one line per call."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traces import UserError
from traces.errors import read_problem

_TIMES = ("aten", "library", "least")


def performance(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return one row per call with its speed, measured in microseconds.

    A row holds the overload, dtype, shapes, environment (GPU, torch and kernel), the times of ATen and the library, and
    the lower bound.

    Raises:
        UserError: A file was not written by the benchmark.
    """
    return [row for path in paths for row in _rows(path)]


def _rows(path: Path) -> list[dict[str, Any]]:
    """Read one file's rows, without failed calls and calls that the library does not serve."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: cannot be read ({read_problem(error)}); write one: python -m benchmarks.operators"
        ) from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            row = record["row"]
            if record.get("failed") or row["library"] is None:
                continue
            times = {name: float(row[name]) for name in _TIMES}
            if not all(math.isfinite(time) and time > 0 for time in times.values()):
                raise ValueError(times)
            is_launch_bound = float(row["host"]) > times["library"]
            texts = {"overload": row["overload"], "shapes": row["shapes"], "dtype": record["dtype"]}
            labels = {name: str(value) for name, value in {**texts, "environment": record["place"]}.items()}
            measured = {"aten_us": times["aten"], "library_us": times["library"], "limit_us": times["least"]}
            rows.append({**labels, **measured, "launch_bound": is_launch_bound})
        except (ValueError, KeyError, TypeError) as error:
            problem = f"line {number} is none of benchmarks.operators --json ({type(error).__name__})"
            raise UserError(f"{path}: {problem}; name another file with --benchmark") from error
    return rows


def speeds(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return for each overload the slowest call's speed relative to ATen.

    Launch-bound calls count only if an overload has no others.
    """
    rows_by_overload: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        rows_by_overload[row["overload"]].append(row)
    return {
        o: round(min(r["aten_us"] / r["library_us"] for r in ([r for r in of if not r["launch_bound"]] or of)), 3)
        for o, of in rows_by_overload.items()
    }
