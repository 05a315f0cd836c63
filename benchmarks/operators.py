"""The library's kernels against ATen's, and FlagGems' where it is installed, operator by operator.

    python -m benchmarks.operators --json operators.jsonl         # goes on where it stopped
    python -m benchmarks.operators --ops '*pool*' --seconds 60

Calls are those of benchmarks/calls.py. Times are of the GPU, as benchmarks/kernels.py takes them, and so are the limit,
the mark of calls that are launch-bound, and what stands for FlagGems. A call is memory-bound where moving its tensors
once takes longer than its multiplications. Nothing is computed in TF32. Each call's figures are written at once; with
the same file the next run leaves out what is in it, if the kernel, the GPU and torch are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeAlias

import torch

from benchmarks import calls_linalg
from benchmarks.calls import Call, calls
from benchmarks.flaggems import Gems, beside
from benchmarks.kernels import Row, Timer, Timing, mean, report
from enable.library import select
from enable.serve.server import Server
from enable.tables import table
from generate.kernel_library import KERNELS, Library

Key: TypeAlias = tuple[str, str, int]  # overload, dtype, and which of their calls
REFUSALS = (LookupError, RuntimeError, TypeError, ValueError)  # that ATen raises for calls that it does not take
FAMILIES = {
    "convolution": ("aten::convolution*",),
    "batch norm and pooling": ("aten::*batch_norm*", "aten::*pool*"),
    "scans and sorting": ("aten::cum*", "aten::logcumsumexp", "aten::sort*", "aten::topk"),
    "matrix products": ("aten::*mm", "aten::*mv", "aten::dot", "aten::_trilinear"),
    "attention": ("aten::_scaled_dot_product_*",),
    "factorisations, distances and transforms": tuple(calls_linalg.SINGLE),
    "reductions": (
        "aten::sum*",
        "aten::mean*",
        "aten::a*max",
        "aten::a*min",
        "aten::var*",
        "aten::std*",
        "aten::prod*",
    ),
}
ARITHMETIC = ("convolution", "matrix products", "attention", "factorisations, distances and transforms")


@dataclass(frozen=True)
class Figure:
    """What a call came to. place: GPU, torch and kernel; number: of the call among those of its overload and dtype."""

    number: int
    dtype: str
    place: str
    row: Row
    failed: str = ""

    @property
    def key(self) -> Key:
        return self.row.overload, self.dtype, self.number


def made_calls(patterns: list[str]) -> Iterator[tuple[Key, Call]]:
    """Calls of overloads that have a kernel."""
    overloads = sorted(o for kernel in Library(KERNELS) for o in kernel.overloads)
    numbers: Counter[tuple[str, str]] = Counter()
    for call in calls(overloads):
        of = call.overload, str(call.dtype).removeprefix("torch.")
        if not patterns or any(fnmatch(call.overload, p) for p in patterns):
            yield (*of, numbers[of]), call
        numbers[of] += 1


def measured(
    asked: argparse.Namespace, timer: Timer, known: dict[Key, Figure], places: dict[str, str]
) -> Iterator[Figure]:
    """The figures of the calls that are not known, until --seconds are over."""
    library = select(unverified=True, device=asked.device)
    timing, ends = Timing(Server(library.entries.get, asked.device), timer), time.monotonic() + asked.seconds
    for key, call in made_calls(asked.ops):
        overload, dtype, number = key
        if key in known:
            continue
        if time.monotonic() > ends:
            print(f"calls of {overload} and after were not reached in {asked.seconds:.0f} s", file=sys.stderr)
            return
        timing.rows, timing.failed = [], {}
        try:
            args, kwargs = call.make(asked.device)
            timing.visit(call.func, args, kwargs)
        except REFUSALS as error:
            why = str(error).partition("\n")[0][:200]
            yield Figure(number, dtype, places[overload], Row(overload, "", 0.0, None, None, 0.0, 0.0), why)
            continue
        yield Figure(number, dtype, places[overload], timing.rows[0], timing.failed.get(overload, ""))
        del args, kwargs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ops", action="append", default=[], metavar="PATTERN", help="Only these; may be repeated.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="Append every call's figures there, and leave out what is there.")
    parser.add_argument("--seconds", type=float, default=3600, help="How long it may take, FlagGems apart.")
    parser.add_argument("--alone", action="store_true", help="Leave FlagGems out.")
    parser.add_argument("--gems-seconds", type=float, default=600, help="How long FlagGems may take in all.")
    parser.add_argument("--gems-each", type=int, default=60, help="How long, for a call; tuning is part of it.")
    parser.add_argument("--gems", type=int, metavar="N", help="Time FlagGems alone, from the Nth call on.")
    parser.add_argument("--skip", action="append", default=[], metavar="OVERLOAD", help="With --gems: leave it out.")
    asked = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False  # as matrix products have it by default
    timer = Timer(asked.device)
    if asked.gems is not None:
        rival = Gems(timer, asked)
        for _, call in made_calls(asked.ops):
            try:
                args, kwargs = call.make(asked.device)
            except REFUSALS:
                rival.leave_out()
                continue
            rival.visit(call.func, args, kwargs)
        return
    here = f"{torch.get_device_module(asked.device).get_device_name()}, torch {torch.__version__}"
    places = {o: f"{here}, {k.key[:16]}" for k in Library(KERNELS) for o in k.overloads}
    known = read(asked.json)
    order = {key: i for i, (key, _) in enumerate(made_calls(asked.ops))}
    found = {k: f for k, f in known.items() if k in order and f.place == places.get(f.row.overload)}
    for figure in measured(asked, timer, found, places):
        found[figure.key] = figure
        if asked.json:
            with asked.json.open("a") as file:
                file.write(json.dumps(asdict(figure)) + "\n")
    gems, failed = ({}, {}) if asked.alone else beside(sys.argv, asked.gems_seconds)
    figures = sorted(found.values(), key=lambda f: order[f.key])
    theirs = [gems.get((order[f.key], f.row.overload)) for f in figures]
    told([replace(f, row=replace(f.row, gems=us)) for f, us in zip(figures, theirs, strict=True)], timer, failed)


def read(path: Path | None) -> dict[Key, Figure]:
    """Figures of earlier runs; the last of each call."""
    found = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        said = json.loads(line)
        figure = Figure(**{**said, "row": Row(**said["row"])})
        found[figure.key] = figure
    return found


def told(figures: list[Figure], timer: Timer, failed: dict[str, str]) -> None:
    """Print the tables: by overload, then by family."""
    rows = [f.row for f in figures if f.row.aten]
    report(rows, timer, {**{f"{f.row.overload} ({f.dtype})": f.failed for f in figures if f.failed}, **failed})
    print()
    print(table(list(families(rows))))


def families(rows: list[Row]) -> Iterator[dict[str, Any]]:
    """Geometric means of a family, over calls that are not launch-bound."""
    busy = [r for r in rows if r.library and not r.launch_bound]
    named = {name: [r for r in busy if any(fnmatch(r.overload, p) for p in pats)] for name, pats in FAMILIES.items()}
    bound = {id(r) for name in ARITHMETIC for r in named[name]}
    named = {"memory-bound": [r for r in busy if id(r) not in bound], **named}
    for name, group in named.items():
        ratio = mean(r.aten / r.library for r in group if r.library)
        limit = mean(max(r.least, 1e-3) / r.library for r in group if r.library)
        yield {
            "family": name,
            "calls": len(group),
            "vs ATen": "-" if ratio is None else f"{ratio:.2f}",
            "limit": "-" if limit is None else f"{limit:.2f}",
        }


if __name__ == "__main__":
    main()
