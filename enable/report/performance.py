"""Speed as `python -m benchmarks.operators --json FILE` wrote it, a line a call."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traces import UserError

_TIMES = ("aten", "library", "least")


def performance(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """A row a call: overload, dtype, shapes, place, and microseconds of ATen, of the library, and at the least.

    Raises UserError for a file that is none of the benchmark's.
    """
    return [row for path in paths for row in _rows(path)]


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); write one: python -m benchmarks.operators") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            told = json.loads(line)
            row = told["row"]
            if told.get("failed") or row["library"] is None:
                continue
            times = {name: float(row[name]) for name in _TIMES}
            if not all(math.isfinite(time) and time > 0 for time in times.values()):
                raise ValueError(times)
            bound = float(row["host"]) > times["library"]
            named = {"overload": str(row["overload"]), "dtype": str(told["dtype"]), "place": str(told["place"])}
            found.append({**named, "shapes": str(row["shapes"]), **times, "launch_bound": bound})
        except (ValueError, KeyError, TypeError) as error:
            what = f"line {number} is none of benchmarks.operators --json ({type(error).__name__})"
            raise UserError(f"{path}: {what}; name another file with --benchmark") from error
    return found


def speeds(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Of each overload the slowest call against ATen, of those not bound by their launch where there are any."""
    by: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["overload"]].append(row)
    return {
        o: round(min(r["aten"] / r["library"] for r in ([r for r in of if not r["launch_bound"]] or of)), 3)
        for o, of in by.items()
    }
