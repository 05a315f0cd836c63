"""Overhead of registration per call: PyTorch's own, served without Python, served by Python, registered and not served.

    python -m benchmarks.dispatch --device cuda [--repeats 2000] [--rounds 9]

On small tensors, so that what is measured is the host's work until the call returns; on cuda kernels run on meanwhile.
Prints medians over rounds, in microseconds a call, and the smallest and largest round. On cpu a served call would be
Triton's interpreter, so there no kernel runs: what is shown is the way to it, which is Python's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from enable import library
from enable.serve import server as serving


def main() -> None:
    """Time each operator in the three states, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=2000, help="calls a round")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{os.cpu_count()} CPU cores"
    print(f"torch {torch.__version__}, {name}; microseconds a call: median (smallest - largest of {options.rounds})\n")
    print(f"| overload | {' | '.join(STATES)} |\n|---|---|---|---|---|")
    for overload, work in works(options.device).items():
        cells = [measured(overload, run, options, state) for state, run in zip(STATES, work, strict=True)]
        print(f"| {overload} | {' | '.join(cells)} |", flush=True)


STATES = ("PyTorch's own", "served", "served by Python", "not served")
Work = Callable[[], Any]


def works(device: str) -> dict[str, tuple[Work, ...]]:
    """By overload what is called in each state; what is not served is of a dtype that no kernel of it lists."""
    x, y = torch.ones(16, 16, device=device), torch.ones(16, 16, device=device)
    unlisted = {"aten::mul_.Tensor": torch.complex32}
    calls: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
        "aten::exp": lambda a, b: torch.exp(a),
        "aten::add.Tensor": torch.add,
        "aten::mul_.Tensor": lambda a, b: a.mul_(b),
        "aten::mm": torch.mm,
    }
    return {
        name: (*[partial(call, x, y)] * 3, partial(call, *[x.to(unlisted.get(name, torch.complex128))] * 2))
        for name, call in calls.items()
    }


def measured(overload: str, work: Work, options: argparse.Namespace, state: str) -> str:
    """The median time of a call, with its range, as text."""
    if state == "PyTorch's own":
        return told(timed(work, options))
    native = state == "served"
    if native and options.device == "cpu":
        return "-"
    with library.use(options.device, ops=[overload], unverified=True, native=native) as registration:
        work()
        counts = registration.counts
        assert bool(counts.served) == state.startswith("served"), counts
        if options.device == "cpu" and state.startswith("served"):
            with without_kernels():
                return told(timed(work, options))
        return told(timed(work, options))


class without_kernels:  # noqa: N801 - a context manager
    """Served calls return their first argument."""

    def __enter__(self) -> None:
        self._before = serving.call, serving.call_direct
        serving.call = lambda plan, arguments, *rest: next(iter(arguments.values()))
        serving.call_direct = lambda op, wrapper, args, kwargs: args[0]

    def __exit__(self, *error: object) -> None:
        serving.call, serving.call_direct = self._before


def timed(work: Work, options: argparse.Namespace) -> list[float]:
    """Microseconds a call, of each round."""
    for _ in range(options.repeats // 10 + 1):
        work()
    found = []
    for _ in range(options.rounds):
        synchronize(options.device)
        started = time.perf_counter()
        for _ in range(options.repeats):
            work()
        found.append((time.perf_counter() - started) / options.repeats * 1e6)
    return found


def synchronize(device: str) -> None:
    """Let no work of the round before run into the next."""
    if device == "cuda":
        torch.cuda.synchronize()


def told(rounds: list[float]) -> str:
    """Median (smallest - largest)."""
    return f"{statistics.median(rounds):.2f} ({min(rounds):.2f} - {max(rounds):.2f})"


if __name__ == "__main__":
    main()
