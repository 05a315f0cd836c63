"""What recording costs: a training step of nanoGPT alone, under an empty dispatch mode, and under the recorder.

    python benchmarks/capture.py [--batch 64] [--steps 20]

The three are interleaved, so that a busy machine slows all of them alike. Times are medians in milliseconds a step.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402 - needs the path above

from capture import Recorder  # noqa: E402
from capture.targets import load_target  # noqa: E402
from models.training import Training  # noqa: E402


class NoOpMode(TorchDispatchMode):
    """What any recorder in Python pays at least."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="timed steps of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "step.trace"
        times, first = measure(path, options.batch, options.steps)
        nbytes = sum(file.stat().st_size for file in path.iterdir())
    report(times, first, nbytes, options)


def measure(path: Path, batch: int, steps: int) -> tuple[dict[str, list[float]], float]:
    """Milliseconds of every timed step by kind, and of the first recorded step, which stores the samples."""
    training = load_target("nanogpt", batch=batch).training
    timed_step(training)  # creates the optimizer's state and warms the allocator
    times: dict[str, list[float]] = {"eager": [], "no-op mode": [], "recorder": []}
    with Recorder(path, model=training.model) as recorder:
        first = timed_step(training)
        timed_step(training)
        for _ in range(steps):
            recorder.step()
            with recorder.pause():
                times["eager"].append(timed_step(training))
                times["no-op mode"].append(timed_step(training, NoOpMode()))
            times["recorder"].append(timed_step(training))
    return times, first


def timed_step(training: Training, context: AbstractContextManager[Any] | None = None) -> float:
    """Milliseconds of one training step inside `context`."""
    batch = next(training.batches)
    with context or nullcontext():
        start = time.perf_counter()
        training.step(batch)
        return 1000 * (time.perf_counter() - start)


def report(times: dict[str, list[float]], first: float, nbytes: int, options: argparse.Namespace) -> None:
    """Print the table."""
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    print(f"nanogpt, batch {options.batch}, median of {options.steps} steps each, interleaved")
    for kind, median in medians.items():
        print(f"  {kind:12} {median:8.1f} ms/step   {median / medians['eager']:.2f}x eager")
    print(f"  recorder / no-op mode: {medians['recorder'] / medians['no-op mode']:.3f}")
    print(f"  first recorded step: {first:.0f} ms   on disk: {nbytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
