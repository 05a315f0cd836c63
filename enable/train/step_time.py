"""Time training steps on a GPU with the library and with PyTorch's own kernels, and attribute the GPU's time."""

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

WARM = 5  # untimed steps for compilation, caches and the optimizer's state
TIMED = 20
PROFILED = 3

_JIT = re.compile(r"^@triton\.jit\b.*\ndef (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class StepTime:
    """Step times in milliseconds.

    Attributes:
        library_ms: Median of TIMED synchronized steps with the library registered.
        native_ms: The same with PyTorch's own kernels.
        share: Share of the GPU's kernel time, from 0 to 1, that the library's kernels take when it is registered.
    """

    JSON = ("library_ms", "native_ms", "share", "ratio")
    library_ms: float
    native_ms: float
    share: float

    @property
    def ratio(self) -> float:
        """Return the step time with the library divided by the native step time."""
        return self.library_ms / self.native_ms


def measure(
    recipe: Recipe,
    device: str,
    registered: Callable[[], AbstractContextManager[Any]],
    library: Library,
    prepare: Callable[[CaptureTarget], None] | None = None,
) -> StepTime:
    """Train anew twice: with the kernels that `registered` registers, and without.

    Args:
        recipe: The training.
        device: Device type.
        registered: Makes the context that registers the kernels.
        library: The kernel library.
        prepare: Called with the target before the training with the library.

    Returns:
        The step times; exceptions from a step pass through.

    Raises:
        UserError: The target cannot be built.
    """
    with registered():
        target = recipe.build(device)
        if prepare is not None:
            prepare(target)
        ours = _median(target)
        share = _share(target, device, kernel_names(library))
    native = _median(recipe.build(device))
    return StepTime(1e3 * ours, 1e3 * native, share)


def kernel_names(library: Library) -> frozenset[str]:
    """Return the device names of the library's kernels."""
    return frozenset(name for kernel in library for name in _JIT.findall(kernel.source))


def _median(target: CaptureTarget) -> float:
    """Return the median time of TIMED steps in seconds."""
    for _ in range(WARM):
        _step(target)
    return statistics.median(_step(target) for _ in range(TIMED))


def _step(target: CaptureTarget) -> float:
    """Run one step and return its time in seconds, with the device synchronized before and after."""
    batch = next(target.training.batches, None)
    torch.accelerator.synchronize()
    started = time.perf_counter()
    target.training.step(batch, lambda name: nullcontext())
    torch.accelerator.synchronize()
    return time.perf_counter() - started


def _share(target: CaptureTarget, device: str, names: frozenset[str]) -> float:
    """Return the library's share of the GPU's kernel time over PROFILED steps."""
    activity = getattr(torch.profiler.ProfilerActivity, device.upper())
    with torch.profiler.profile(activities=[activity], acc_events=True) as profile:
        for _ in range(PROFILED):
            _step(target)
    assert profile.profiler is not None
    return share(profile.profiler.kineto_results.events(), names)


def share(events: Iterable[Any], names: frozenset[str]) -> float:
    """Return the named kernels' share of a profiler's device time, without copies and fills of memory."""
    total = library_total = 0
    for event in events:
        if event.device_type() == torch._C._autograd.DeviceType.CPU or event.name().startswith(("Memcpy", "Memset")):
            continue
        total += event.duration_ns()
        library_total += event.duration_ns() if event.name() in names else 0
    return library_total / total if total else 0.0
