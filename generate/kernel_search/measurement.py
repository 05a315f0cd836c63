"""Evaluate kernel times on recorded shapes: medians, gain over another kernel, noise, and the limit.

For each shape the kernels take turns, round by round. The first kernel, which is in force, gets two turns per round.
The noise is the larger of two values: the difference between these two turns, and a bootstrap interval over the
rounds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from generate.kernel_library import Match
from generate.validation import validated
from traces import TraceError
from verify.cases.case import Case

ROUNDS = 31  # turns per kernel and shape
CONFIRMING = 61  # rounds before acceptance; times are taken anew, because the candidate was selected by its times
FASTER = 1.03  # minimum speedup in the geometric mean, beyond noise
SLOWER = 1.05  # maximum slowdown on any shape
_RESAMPLED = 200  # bootstrap samples
_QUANTILE = 0.975


@dataclass(frozen=True)
class TimedShape:
    """One signature of recorded calls.

    Attributes:
        name: Overload and arguments without contents; the key for times.
        case: Case with this signature.
        nbytes: Bytes that a call moves, as counted in enable/cover/cost.py.
        flops: Operations in a call, as counted there.
        elements: Elements in the largest tensor.
        dtype: Dtype of matrix products.
    """

    name: str
    case: Case
    nbytes: float
    flops: float
    elements: int
    dtype: str = "float32"


@dataclass(frozen=True)
class TimedKernel:
    """A kernel to be timed.

    Attributes:
        written: Kernel file as its author wrote it, before blocks are linked.
        match: Function from an overload to the way the kernel serves it.
    """

    written: str
    match: Callable[[str], Match | None]

    @property
    def sha256(self) -> str:
        return text_digest(self.written)


def text_digest(written: str) -> str:
    """Return the SHA-256 over a kernel file as its author wrote it; recorded times are keyed by it."""
    return hashlib.sha256(written.encode()).hexdigest()


@dataclass(frozen=True)
class TimedDevice:
    """A GPU's capabilities.

    Attributes:
        name: Name.
        target: Target, such as sm_90.
        processors: Number of multiprocessors.
        bandwidth: Bytes per microsecond in a large copy.
        launch: Microseconds for a kernel that writes one byte.
        rates: Operations per microsecond in a large matrix product, by dtype.
        beside: Number of other processes that use the GPU; None if unknown.
    """

    name: str
    target: str
    processors: int
    bandwidth: float
    launch: float
    rates: Mapping[str, float] = field(default_factory=dict)
    beside: int | None = None

    def limit(self, shape: TimedShape) -> float:
        """Return the lower bound for a call in microseconds: one launch, moving its bytes once, or its operations."""
        rate = self.rates.get(shape.dtype)
        return max(self.launch, shape.nbytes / self.bandwidth, shape.flops / rate if rate else 0.0)


@dataclass(frozen=True)
class TimedLaunch:
    """One launch in a call.

    Attributes:
        kernel: Kernel name.
        programs: Program instances.
        warps: Warps per program instance.
        registers: Registers per thread.
        spills: Spilled registers per thread.
        shared: Shared memory per program instance, in bytes.
    """

    kernel: str
    programs: int
    warps: int
    registers: int
    spills: int
    shared: int


@dataclass(frozen=True)
class ShapeTimes:
    """One kernel's times on one shape.

    Attributes:
        gpu: GPU time in microseconds, one value per round.
        host: Microseconds until the call returns on the host.
        launches: Launches in a call.
    """

    gpu: tuple[float, ...]
    host: float
    launches: tuple[TimedLaunch, ...] = ()

    @property
    def median(self) -> float:
        """Return the median GPU time in microseconds."""
        return float(np.median(self.gpu))


@dataclass(frozen=True)
class Measurement:
    """The times for several kernels.

    Attributes:
        device: GPU.
        times: One mapping from shape names to times per kernel, in the order of the kernels.
        again: The first kernel's second turns.
        profile: The profiler's output for the last kernel, or the reason why there is none.
    """

    device: TimedDevice
    times: tuple[Mapping[str, ShapeTimes], ...]
    again: Mapping[str, ShapeTimes]
    profile: str = ""

    @classmethod
    def of_json(cls, value: Any, where: str) -> Measurement:
        """Return the measurement that `jsonable` converted to JSON.

        Raises:
            TraceError: If the value is not a measurement; the message begins with `where`.
        """
        try:
            return validated(cls, value)
        except ValueError as error:
            raise TraceError(f"{where}: not a measurement ({error})") from error

    def ratio(self, shapes: Sequence[TimedShape], kernel: int) -> float:
        """Return the geometric mean over shapes of limit / time, at most 1; at 1 the kernel cannot be faster."""
        logs = [math.log(self.device.limit(s) / self.times[kernel][s.name].median) for s in shapes]
        return min(1.0, math.exp(sum(logs) / len(logs)))


class KernelTimer(Protocol):
    """Times kernels; the first one is in force."""

    def __call__(self, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape], rounds: int, /) -> Measurement: ...


@dataclass(frozen=True)
class Gain:
    """A kernel's speedup over the kernel in force.

    Attributes:
        mean: Geometric mean of the speedup over shapes; above 1 is faster.
        noise: Factor of at least 1 that may be due to chance.
        shapes: Speedup by shape name.
        beside: See TimedDevice.
    """

    mean: float
    noise: float
    shapes: Mapping[str, float]
    beside: int | None = None

    @property
    def slowest(self) -> str:
        """Return the shape with the smallest speedup."""
        return min(self.shapes, key=lambda name: self.shapes[name])

    @property
    def refusal(self) -> str:
        """Return why the gain is too small for acceptance; '' if it is sufficient."""
        summary = f"{self.mean:.3f} times as fast, noise {self.noise - 1:.1%}"
        if self.mean / self.noise < FASTER:
            return f"{summary}: less than {FASTER - 1:.0%} beyond noise"
        if self.shapes[self.slowest] < 1 / SLOWER:
            loss = 1 / self.shapes[self.slowest] - 1
            return f"{summary}: {self.slowest} takes {loss:.1%} longer, {SLOWER - 1:.0%} is the most"
        return ""


def gain(measured: Measurement, kernel: int) -> Gain:
    """Return the gain for one kernel over the first kernel.

    The first kernel's two turns are pooled. The noise is the larger of the bootstrap spread and the mean log
    ratio between its two turns.
    """
    names = list(measured.again)
    first, other = measured.times[0], measured.times[kernel]
    before = [np.array([*first[n].gpu, *measured.again[n].gpu]) for n in names]
    after = [np.array(other[n].gpu) for n in names]
    logs = [math.log(float(np.median(b)) / float(np.median(a))) for b, a in zip(before, after, strict=True)]
    apart = [math.log(first[n].median / measured.again[n].median) for n in names]
    noise = max(_spread(before, after), abs(sum(apart) / len(apart)))
    shapes = {n: math.exp(value) for n, value in zip(names, logs, strict=True)}
    return Gain(math.exp(sum(logs) / len(logs)), math.exp(noise), shapes, measured.device.beside)


def _spread(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> float:
    """Return half the 95 % interval for the mean log ratio when the rounds are resampled (bootstrap)."""
    random = np.random.default_rng(0)

    def medians(times: np.ndarray) -> np.ndarray:
        drawn: np.ndarray = np.median(random.choice(times, (_RESAMPLED, len(times))), axis=1)
        return drawn

    drawn = sum(np.log(medians(b) / medians(a)) for b, a in zip(before, after, strict=True)) / len(before)
    low, high = np.quantile(drawn, [1 - _QUANTILE, _QUANTILE])
    return float(high - low) / 2
