"""Times of kernels on recorded shapes: what a timer gives, what they say of one kernel beside another, and the limit.

Of each shape the kernels take turns, round by round, and the first of them, which is in force, has two turns: how far
these two are apart is noise, as is what a bootstrap over the rounds says of the ratios.
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

ROUNDS = 31  # turns of each kernel on each shape
CONFIRMING = 61  # of what is about to be accepted, which was chosen for its times: they are taken anew
FASTER = 1.03  # what the geometric mean has to gain beyond noise
SLOWER = 1.05  # what no shape may take longer
_RESAMPLED = 200  # of the bootstrap
_QUANTILE = 0.975


@dataclass(frozen=True)
class TimedShape:
    """One signature of recorded calls. name: overload and arguments without contents, by which times are kept.

    nbytes, flops: of a call, as enable/cover/cost.py counts them. elements: of the largest tensor. dtype: that products
    are of.
    """

    name: str
    case: Case
    nbytes: float
    flops: float
    elements: int
    dtype: str = "float32"


@dataclass(frozen=True)
class TimedKernel:
    """A kernel to be timed. written: its text as its author has it. match: how it serves an overload."""

    written: str
    match: Callable[[str], Match | None]

    @property
    def sha256(self) -> str:
        return text_digest(self.written)


def text_digest(written: str) -> str:
    """sha256 of a kernel file as its author has it, which times are kept by."""
    return hashlib.sha256(written.encode()).hexdigest()


@dataclass(frozen=True)
class TimedDevice:
    """What a GPU can do. bandwidth: bytes a microsecond of a large copy. rates: operations a microsecond of a large
    product, by dtype. launch: microseconds of a kernel that writes a byte. processors: multiprocessors. beside: other
    processes that have it open, None where nobody can tell."""

    name: str
    target: str
    processors: int
    bandwidth: float
    launch: float
    rates: Mapping[str, float] = field(default_factory=dict)
    beside: int | None = None

    def limit(self, shape: TimedShape) -> float:
        """Microseconds that a call takes at the least: a launch, moving its bytes once, or its operations."""
        rate = self.rates.get(shape.dtype)
        return max(self.launch, shape.nbytes / self.bandwidth, shape.flops / rate if rate else 0.0)


@dataclass(frozen=True)
class TimedLaunch:
    """One launch of a call. programs, warps: of each program; registers: of a thread; spills: of these; shared: bytes
    of a program."""

    kernel: str
    programs: int
    warps: int
    registers: int
    spills: int
    shared: int


@dataclass(frozen=True)
class ShapeTimes:
    """Of one kernel on one shape. gpu: microseconds of each round. host: microseconds until the call returns."""

    gpu: tuple[float, ...]
    host: float
    launches: tuple[TimedLaunch, ...] = ()

    @property
    def median(self) -> float:
        return float(np.median(self.gpu))


@dataclass(frozen=True)
class Measurement:
    """times: of each kernel, by name of the shape, in the order in which they were given. again: of the first kernel's
    other turns. profile: what a profiler says of the last one, or why it says nothing."""

    device: TimedDevice
    times: tuple[Mapping[str, ShapeTimes], ...]
    again: Mapping[str, ShapeTimes]
    profile: str = ""

    @classmethod
    def of_json(cls, value: Any, where: str) -> Measurement:
        """Return what `jsonable` made of one. Raises TraceError naming `where` if it is not that."""
        try:
            return validated(cls, value)
        except ValueError as error:
            raise TraceError(f"{where}: not a measurement ({error})") from error

    def ratio(self, shapes: Sequence[TimedShape], kernel: int) -> float:
        """Of the limit to the time, the geometric mean over shapes: at 1 nothing could be faster."""
        logs = [math.log(self.device.limit(s) / self.times[kernel][s.name].median) for s in shapes]
        return min(1.0, math.exp(sum(logs) / len(logs)))


class KernelTimer(Protocol):
    """Times kernels, the first of which is the one in force."""

    def __call__(self, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape], rounds: int, /) -> Measurement: ...


@dataclass(frozen=True)
class Gain:
    """How much faster a kernel is than the one in force. mean: of the times, over shapes, geometric; above 1 is faster.
    noise: what of it may be chance, as a factor of at least 1. shapes: of each. beside: see TimedDevice."""

    mean: float
    noise: float
    shapes: Mapping[str, float]
    beside: int | None = None

    @property
    def slowest(self) -> str:
        """The shape that gains the least."""
        return min(self.shapes, key=lambda name: self.shapes[name])

    @property
    def refusal(self) -> str:
        """Why this is too little for a kernel to be accepted; empty if it is enough."""
        told = f"{self.mean:.3f} times as fast, noise {self.noise - 1:.1%}"
        if self.mean / self.noise < FASTER:
            return f"{told}: less than {FASTER - 1:.0%} beyond noise"
        if self.shapes[self.slowest] < 1 / SLOWER:
            loss = 1 / self.shapes[self.slowest] - 1
            return f"{told}: {self.slowest} takes {loss:.1%} longer, {SLOWER - 1:.0%} is the most"
        return ""


def gain(measured: Measurement, kernel: int) -> Gain:
    """Of one of the kernels beside the first, whose two turns are taken together."""
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
    """Half of the interval that holds 95 % of the mean logarithms when the rounds are drawn anew (the bootstrap)."""
    random = np.random.default_rng(0)

    def medians(times: np.ndarray) -> np.ndarray:
        drawn: np.ndarray = np.median(random.choice(times, (_RESAMPLED, len(times))), axis=1)
        return drawn

    drawn = sum(np.log(medians(b) / medians(a)) for b, a in zip(before, after, strict=True)) / len(before)
    low, high = np.quantile(drawn, [1 - _QUANTILE, _QUANTILE])
    return float(high - low) / 2
