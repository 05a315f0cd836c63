"""What recording costs: a training step alone, under an empty dispatch mode, under the recorder, and under others.

    python -m benchmarks.capture [--model nanogpt] [--batch 64] [--steps 10] [--device cpu] [--set bf16=true] [--others]

Three measurements, about a minute in all on a GPU:
- the steady state at the sizes given, and at sizes so small that launching decides: recorder / no-op mode, with keys
  of calls made in Python and in C++;
- a capture of all contents at these small sizes: microseconds a stored call;
- a capture of all contents at sizes at which the bus decides (on a CPU: at the sizes given): its rate beside that of a
  bare copy, on a GPU into pinned memory. The GPU's writes about 10 GB below the directory for temporary files.

The kinds are interleaved, so that a busy machine slows all of them alike. Times are medians in milliseconds a step, of
the steady state: the first step, in which the samples are stored, is reported apart. The end of a step, which the
recorder is told, is part of the recorder's time.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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

SMALL = {"n_layer": "4", "n_embd": "32", "n_head": "2", "block_size": "8"}  # of nanogpt: launching decides
SMALL_STEPS = 40
LARGE = {"n_layer": "2", "n_embd": "1024", "n_head": "16", "block_size": "512"}  # the bus decides, with LARGE_BATCH
LARGE_BATCH = 32
LIMIT = 40 << 30  # bytes of contents, on disk and in memory
WARM_STEPS = 2  # that allocate the pinned memory; in the first, which is slow, less waits there at once
FULL_STEPS = 2  # timed steps of a capture of all contents, after these


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
    parser.add_argument("--steps", type=int, default=10, help="timed steps of each kind at the sizes given")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--others", action="store_true", help="also other recorders, at the sizes given")
    options = parser.parse_args()
    device, settings = options.device, dict(text.split("=", 1) for text in options.set)
    given = load_target(options.model, settings, batch=options.batch, device=device).training
    small = load_target("nanogpt", SMALL, batch=1, device=device).training
    print(f"{device}, torch {torch.__version__}; medians, kinds interleaved")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        keys = {"Python": None, "C++": directory / "native"}
        for language, native in keys.items():
            title = f"{options.model}, batch {options.batch or 'default'}, keys in {language}"
            steady_state(title, given, directory, options, native)
        options.steps, options.others = SMALL_STEPS, False
        for language, native in keys.items():
            steady_state(f"nanogpt, launch-bound, keys in {language}", small, directory, options, native)
        full_capture("nanogpt, launch-bound", small, directory)
        if torch.cuda.is_initialized():
            del given
            given = load_target("nanogpt", LARGE, LARGE_BATCH, "adamw-fused", device).training
            full_capture(f"nanogpt, bus-bound, batch {LARGE_BATCH}", given, directory)
        else:
            full_capture(f"{options.model}, batch {options.batch or 'default'}", given, directory)


def timed_step(training: Training, batch: Any, context: Any = None, end: Callable[[], None] = lambda: None) -> float:
    """Milliseconds of one training step inside `context`, with what ends it."""
    with context or nullcontext():
        wait()
        start = time.perf_counter()
        training.step(batch)
        end()
        wait()
        return 1000 * (time.perf_counter() - start)


def wait() -> None:
    """For the device to finish."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def steady_state(
    title: str, training: Training, directory: Path, options: argparse.Namespace, native: Path | None
) -> None:
    """Print milliseconds a step by kind. native: as of Recorder."""
    batch = next(training.batches)
    timed_step(training, batch)  # creates the optimizer's state and warms the allocator
    kinds: dict[str, Callable[[], AbstractContextManager[Any]]] = {"eager": nullcontext, "no-op mode": NoOpMode}
    if options.others:
        kinds |= {"ExecutionTraceObserver": lambda: execution_trace(directory), "DebugMode": DebugMode}
    times: dict[str, list[float]] = {kind: [] for kind in [*kinds, "recorder"]}
    path = directory / "step.trace"
    with Recorder(path, model=training.model, force=True, native=native) as recorder:
        first = timed_step(training, batch, end=recorder.step)
        for _ in range(2):
            timed_step(training, batch, end=recorder.step)
        for _ in range(options.steps):
            gc.collect()  # what the kinds left behind
            with recorder.pause():
                for kind, context in kinds.items():
                    times[kind].append(timed_step(training, batch, context()))
            times["recorder"].append(timed_step(training, batch, end=recorder.step))
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    trace = Trace.open(path)
    calls = trace.manifest["calls"] / trace.manifest["steps"]
    print(f"{title}: {calls:.0f} calls a step, {options.steps} steps each")
    for kind, median in medians.items():
        print(f"  {kind:24} {median:8.2f} ms/step   {median / medians['eager']:.2f}x eager")
    more = medians["recorder"] - medians["no-op mode"]
    ratio = medians["recorder"] / medians["no-op mode"]
    print(f"  recorder / no-op mode: {ratio:.3f}, {1000 * more / calls:.2f} us a call")
    size = sum(file.stat().st_size for file in path.iterdir())
    print(f"  first recorded step: {first:.0f} ms   on disk: {size / 1e6:.1f} MB")


def wait_for_the_disk(path: Path) -> None:
    """Return when nothing has been written there for two seconds."""
    before, now = -1, 0
    while before != now:
        time.sleep(2.0)
        files = [file for file in path.iterdir() if file.suffix != ".tmp"]  # which go while they are looked at
        before, now = now, sum(file.stat().st_size for file in files)


def full_capture(title: str, training: Training, directory: Path) -> None:
    """Print how fast the contents of every call of a step reach the host, the memory for them being there already."""
    path, batch = directory / "full.trace", next(training.batches)
    timed_step(training, batch)
    rates, eagers, recordeds, copied = [], [], [], 0
    limits = {"per_signature": 1 << 30, "max_bytes": LIMIT, "max_blob": LIMIT, "queue_bytes": LIMIT}
    with Recorder(path, force=True, **limits) as recorder:
        for _ in range(WARM_STEPS + FULL_STEPS):
            with recorder.pause():
                wait_for_the_disk(path)
                gc.collect()
                eagers.append(timed_step(training, batch))
            before = recorder.contents_bytes
            recordeds.append(timed_step(training, batch, end=recorder.step))
            copied = recorder.contents_bytes - before
            rates.append(1e-6 * copied / max(recordeds[-1] - eagers[-1], 1e-3))
        start = time.perf_counter()
    durable = time.perf_counter() - start
    manifest = Trace.open(path).manifest
    calls = manifest["stored"] / manifest["steps"]
    eager, recorded, rate = (statistics.median(values[WARM_STEPS:]) for values in (eagers, recordeds, rates))
    bare = bare_rate()
    print(f"{title}: all contents of a step, {copied / 1e9:.3f} GB in {calls:.0f} calls, {manifest['levels']}")
    print(
        f"  eager {eager:.1f} ms, recorded {recorded:.1f} ms, {1000 * (recorded - eager) / calls:.0f} us a stored call"
    )
    print(f"  {rate:.2f} GB/s to the host, {100 * rate / bare:.0f} % of a bare copy's {bare:.1f} GB/s")
    print(f"  durable {durable:.1f} s later", flush=True)


def bare_rate() -> float:
    """GB/s of a plain copy of a GiB: from the GPU into pinned memory, or within the host's."""
    device = "cuda" if torch.cuda.is_initialized() else "cpu"
    target = torch.ones(1 << 30, dtype=torch.uint8, pin_memory=device == "cuda")
    source = torch.ones(1 << 30, dtype=torch.uint8, device=device)
    rates = []
    for _ in range(5):
        wait()
        begin = time.perf_counter()
        target.copy_(source, non_blocking=True)
        wait()
        rates.append(1e-9 * target.numel() / (time.perf_counter() - begin))
    return statistics.median(rates)


if __name__ == "__main__":
    main()
