"""What a training step takes on a GPU, with the library registered and with PyTorch's own kernels, and whose time."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from capture.targets import CaptureTarget
from enable.train.training_run import Recipe
from generate.kernel_library import Library

WARM = 5  # steps before the first that is timed: compilation, caches, the optimizer's state
TIMED = 20
PROFILED = 3

_JIT = re.compile(r"^@triton\.jit\b.*\ndef (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class StepTime:
    """Medians of TIMED steps, each waited for, in milliseconds. share: of the GPU's time in kernels with the library
    registered, that of the library's own, from 0 to 1."""

    JSON = ("library_ms", "native_ms", "share", "ratio")
    library_ms: float
    native_ms: float
    share: float

    @property
    def ratio(self) -> float:
        """How many times as long a step takes with the library."""
        return self.library_ms / self.native_ms


def measure(
    recipe: Recipe,
    device: str,
    registered: Callable[[], AbstractContextManager[Any]],
    library: Library,
    prepare: Callable[[CaptureTarget], None] | None = None,
) -> StepTime:
    """Train anew, with the kernels that `registered` puts under ATen and without. prepare: what is done to the target
    first, with them. Raises UserError, and what a step raises."""
    with registered():
        target = recipe.build(device)
        if prepare is not None:
            prepare(target)
        ours = _median(target)
        share = _share(target, device, kernel_names(library))
    native = _median(recipe.build(device))
    return StepTime(1e3 * ours, 1e3 * native, share)


def kernel_names(library: Library) -> frozenset[str]:
    """Names that the library's kernels have on a device."""
    return frozenset(name for kernel in library for name in _JIT.findall(kernel.source))


def _median(target: CaptureTarget) -> float:
    for _ in range(WARM):
        _step(target)
    return statistics.median(_step(target) for _ in range(TIMED))


def _step(target: CaptureTarget) -> float:
    batch = next(target.training.batches, None)
    torch.accelerator.synchronize()
    started = time.perf_counter()
    target.training.step(batch, lambda name: nullcontext())
    torch.accelerator.synchronize()
    return time.perf_counter() - started


def _share(target: CaptureTarget, device: str, names: frozenset[str]) -> float:
    activity = getattr(torch.profiler.ProfilerActivity, device.upper())
    with torch.profiler.profile(activities=[activity], acc_events=True) as profile:
        for _ in range(PROFILED):
            _step(target)
    assert profile.profiler is not None
    return share(profile.profiler.kineto_results.events(), names)


def share(events: Iterable[Any], names: frozenset[str]) -> float:
    """Of the time of a profiler's events on a device, that of the kernels with these names; copies and fills of memory
    are nobody's."""
    total = own = 0
    for event in events:
        if event.device_type() == torch._C._autograd.DeviceType.CPU or event.name().startswith(("Memcpy", "Memset")):
            continue
        total += event.duration_ns()
        own += event.duration_ns() if event.name() in names else 0
    return own / total if total else 0.0
