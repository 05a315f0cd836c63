"""What recording costs: a training step alone, under an empty dispatch mode, under the recorder, and under others.

    python -m benchmarks.capture [--model nanogpt] [--batch 64] [--steps 10] [--device cpu] [--set bf16=true]

The kinds are interleaved, so that a busy machine slows all of them alike. Times are medians in milliseconds a step, of
the steady state: the first step, in which the samples are stored, is reported apart. On CUDA the rate of a capture of
all contents is printed beside that of a bare copy into pinned memory.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ExecutionTraceObserver
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode

from capture import Recorder
from capture.targets import load_target
from models.training import Training
from traces import Trace


class NoOpMode(TorchDispatchMode):
    """What any recorder in Python pays at least."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def execution_trace(directory: Path) -> Iterator[None]:
    """PyTorch's own recorder of operators, without values."""
    observer = ExecutionTraceObserver()
    observer.register_callback(str(directory / "execution.json"))
    observer.start()
    try:
        yield
    finally:
        observer.stop()
        observer.unregister_callback()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nanogpt")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--steps", type=int, default=10, help="timed steps of each kind")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    settings = dict(text.split("=", 1) for text in options.set)
    training = load_target(options.model, settings, batch=options.batch, device=options.device).training
    with tempfile.TemporaryDirectory() as directory:
        steady_state(training, Path(directory), options)
        if options.device.startswith("cuda"):
            full_capture(training, Path(directory))


def timed_step(training: Training, batch: Any, context: Any = None) -> float:
    """Milliseconds of one training step inside `context`."""
    gc.collect()  # what another kind left behind
    with context or nullcontext():
        wait()
        start = time.perf_counter()
        training.step(batch)
        wait()
        return 1000 * (time.perf_counter() - start)


def wait() -> None:
    """For the device to finish."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def steady_state(training: Training, directory: Path, options: argparse.Namespace) -> None:
    """Print milliseconds a step by kind."""
    batch = next(training.batches)
    timed_step(training, batch)  # creates the optimizer's state and warms the allocator
    kinds = {
        "eager": nullcontext,
        "no-op mode": NoOpMode,
        "ExecutionTraceObserver": lambda: execution_trace(directory),
        "DebugMode": DebugMode,
    }
    times: dict[str, list[float]] = {kind: [] for kind in [*kinds, "recorder"]}
    path = directory / "step.trace"
    with Recorder(path, model=training.model) as recorder:
        first = timed_step(training, batch)
        timed_step(training, batch)
        for _ in range(options.steps):
            recorder.step()
            with recorder.pause():
                for kind, context in kinds.items():
                    times[kind].append(timed_step(training, batch, context()))
            times["recorder"].append(timed_step(training, batch))
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    print(f"{options.model}, batch {options.batch or 'default'}, {options.device}, torch {torch.__version__},")
    print(f"median of {options.steps} steps each, interleaved")
    for kind, median in medians.items():
        print(f"  {kind:24} {median:8.1f} ms/step   {median / medians['eager']:.2f}x eager")
    print(f"  recorder / no-op mode: {medians['recorder'] / medians['no-op mode']:.3f}")
    size = sum(file.stat().st_size for file in path.iterdir())
    print(f"  first recorded step: {first:.0f} ms   on disk: {size / 1e6:.1f} MB")


def wait_for_the_disk(path: Path) -> None:
    """Return when nothing has been written there for five seconds."""
    before, now = -1, 0
    while before != now:
        time.sleep(5.0)
        before, now = now, sum(file.stat().st_size for file in path.iterdir() if file.suffix != ".tmp")


def full_capture(training: Training, directory: Path) -> None:
    """Print how fast the contents of every call of a step reach the host, the memory for them being there already."""
    path, limit, batch = directory / "full.trace", 40 << 30, next(training.batches)
    with Recorder(path, per_signature=1 << 30, max_bytes=limit, max_blob=limit, queue_bytes=limit) as recorder:
        timed_step(training, batch)  # allocates the pinned memory
        recorder.step()
        with recorder.pause():
            wait_for_the_disk(path)
            eager = timed_step(training, batch)
        before = recorder.contents_bytes
        recorded = timed_step(training, batch)
        copied = recorder.contents_bytes - before
        start = time.perf_counter()
    durable = time.perf_counter() - start
    levels = Trace.open(path).manifest["levels"]
    pinned = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    rates = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        pinned.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        rates.append(1e-9 * pinned.numel() / (time.perf_counter() - begin))
    bare, rate = statistics.median(rates), 1e-6 * copied / (recorded - eager)
    print(
        f"full capture of one step: {copied / 1e9:.2f} GB, eager {eager:.1f} ms, recorded {recorded:.1f} ms, {levels}"
    )
    print(f"  {rate:.1f} GB/s to the host, {100 * rate / bare:.0f} % of a bare pinned copy's {bare:.1f} GB/s")
    print(f"  durable {durable:.1f} s later")


if __name__ == "__main__":
    main()
