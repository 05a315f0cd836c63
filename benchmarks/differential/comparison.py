"""Compare a GPU's results with the simulator's: bit for bit, or within the allowances that a result has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.differential.allowances import LEAST_STEPS, SLACK, widened
from benchmarks.differential.dtypes import BOOL, FLOATS, SIGN_OF_ZERO
from benchmarks.differential.grammar import Buffer
from benchmarks.differential.programs import Program
from benchmarks.differential.sides import OK, REFUSED, Answer

BITWISE, FUSED, ALLOWED, UNEXPLAINED = "bitwise", "modelled", "allowed", "unexplained"
UNUSED = "refused by the compiler"


@dataclass(frozen=True)
class Outcome:
    """Result of a comparison.

    Attributes:
        verdict: BITWISE; FUSED, if the bits equal the simulator's with contractions; ALLOWED;
            UNEXPLAINED; or UNUSED.
        allowances: Allowances that the differing results have.
        detail: First difference, or the error.
        result: First result that differs.
    """

    verdict: str
    allowances: tuple[str, ...] = ()
    detail: str = ""
    result: str = ""


def compare(program: Program, sim: Answer, gpu: Answer) -> Outcome:
    """Compare the answers for one program."""
    if gpu.status == REFUSED:
        return Outcome(UNUSED, detail=gpu.message)
    if sim.status != OK or gpu.status != OK:
        errors = (f"{side}: {a.message}" for side, a in (("sim", sim), ("gpu", gpu)) if a.status != OK)
        return Outcome(UNEXPLAINED, detail="; ".join(errors))
    verdicts, names = {BITWISE}, set[str]()
    for position, buffer in enumerate(program.results):
        actual, expected = gpu.results[position], sim.results[position]
        if _same(buffer, actual, expected):
            continue
        if sim.fused and _same(buffer, actual, sim.fused[position]):
            verdicts.add(FUSED)
            continue
        wrong = _wrong(buffer, actual, expected, [noisy[position] for noisy in sim.noisy])
        if wrong.any():
            return Outcome(UNEXPLAINED, detail=_described(buffer, actual, expected, wrong), result=buffer.name)
        verdicts.add(ALLOWED)
        names |= buffer.taints or set()
    verdict = next(v for v in (ALLOWED, FUSED, BITWISE) if v in verdicts)
    return Outcome(verdict, tuple(sorted(names)))


def _array(buffer: Buffer, data: bytes) -> np.ndarray:
    """Return a buffer's elements; bfloat16 ones as float32."""
    if buffer.dtype == "bfloat16":
        return widened(np.frombuffer(data, np.uint16), buffer.dtype)
    return np.frombuffer(data, "bool" if buffer.dtype == BOOL else buffer.dtype)


def _same(buffer: Buffer, actual: bytes, expected: bytes) -> bool:
    """Return True if all bits are the same; every NaN equals every other NaN."""
    if actual == expected:
        return True
    a, e = _array(buffer, actual), _array(buffer, expected)
    return buffer.dtype in FLOATS and bool(((_bits(a) == _bits(e)) | (np.isnan(a) & np.isnan(e))).all())


def _bits(array: np.ndarray) -> np.ndarray:
    bits: np.ndarray = array.view(f"u{array.itemsize}")
    return bits


def _wrong(buffer: Buffer, actual: bytes, expected: bytes, noisy: Sequence[bytes]) -> np.ndarray:
    """Return a mask that marks the elements without an explanation."""
    a, e = _array(buffer, actual), _array(buffer, expected)
    if buffer.dtype not in FLOATS:
        return np.asarray(a != e)
    same = (_bits(a) == _bits(e)) | (np.isnan(a) & np.isnan(e))
    taints = buffer.taints or frozenset()
    if taints:
        same |= (a == 0) & (e == 0)
    if not taints - {SIGN_OF_ZERO} or not noisy:
        unequal: np.ndarray = ~same
        return unequal
    runs = [_array(buffer, data).astype(np.float64) for data in noisy]
    a, e = a.astype(np.float64), e.astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(run - e) for run in runs], axis=0)
        close = np.abs(a - e) <= np.maximum(SLACK * spread, LEAST_STEPS * _unit(e, buffer.dtype))
    unstable = np.any([_class(run) != _class(e) for run in runs], axis=0)  # an overflow that depends on a rounding
    wrong: np.ndarray = ~(same | close | unstable)
    return wrong


def _unit(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return the distance to the next number in a float type, for float64 numbers."""
    digits, lowest = {"float16": (10, -24), "bfloat16": (7, -133), "float32": (23, -149), "float64": (52, -1074)}[dtype]
    unit: np.ndarray = np.exp2(np.maximum(np.frexp(array)[1] - 1 - digits, lowest))
    return unit


def _class(array: np.ndarray) -> np.ndarray:
    """Return 0 for finite numbers, 1 and -1 for infinities, and 2 for NaN."""
    classes: np.ndarray = np.where(np.isnan(array), 2, np.where(np.isinf(array), np.sign(array), 0))
    return classes


def _described(buffer: Buffer, actual: bytes, expected: bytes, wrong: np.ndarray) -> str:
    """Describe the first element that differs."""
    a, e, first = _array(buffer, actual), _array(buffer, expected), int(np.argmax(wrong))
    taints = f", allowances: {', '.join(sorted(buffer.taints))}" if buffer.taints else ""
    counted = f"{int(wrong.sum())} of {wrong.size} elements of {buffer.name} ({buffer.dtype}{taints}) differ"
    return f"{counted}; element {first} is {e[first]!r} in sim and {a[first]!r} on the GPU"
