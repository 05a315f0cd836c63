"""Compare a GPU's results with the simulator's: bit for bit, or within the allowances that a result has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.differential.allowances import SLACK, widened
from benchmarks.differential.dtypes import BOOL, FLOATS, SIGN_OF_ZERO
from benchmarks.differential.grammar import Buffer
from benchmarks.differential.programs import Program
from benchmarks.differential.sides import OK, REFUSED, Answer

BITWISE, FUSED, ALLOWED, UNEXPLAINED = "bitwise", "modelled", "allowed", "unexplained"
UNUSED = "refused by the compiler"


@dataclass(frozen=True)
class Outcome:
    """How the sides of a program compare.

    Attributes:
        verdict: BITWISE; FUSED, if the results are bitwise those of the simulator's run with contractions; ALLOWED;
            UNEXPLAINED; or UNUSED.
        allowances: Allowances of the results that differ.
        detail: First difference, or the error.
    """

    verdict: str
    allowances: tuple[str, ...] = ()
    detail: str = ""


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
            return Outcome(UNEXPLAINED, detail=_described(buffer, actual, expected, wrong))
        verdicts.add(ALLOWED)
        names |= buffer.taints or set()
    verdict = next(v for v in (ALLOWED, FUSED, BITWISE) if v in verdicts)
    return Outcome(verdict, tuple(sorted(names)))


def _array(buffer: Buffer, data: bytes) -> np.ndarray:
    """Return the elements of a buffer; those of bfloat16 as float32."""
    if buffer.dtype == "bfloat16":
        return widened(np.frombuffer(data, np.uint16), buffer.dtype)
    return np.frombuffer(data, "bool" if buffer.dtype == BOOL else buffer.dtype)


def _same(buffer: Buffer, actual: bytes, expected: bytes) -> bool:
    """Return True if all bits are the same, except those of NaN."""
    if actual == expected:
        return True
    a, e = _array(buffer, actual), _array(buffer, expected)
    return buffer.dtype in FLOATS and bool(((_bits(a) == _bits(e)) | (np.isnan(a) & np.isnan(e))).all())


def _bits(array: np.ndarray) -> np.ndarray:
    bits: np.ndarray = array.view(f"u{array.itemsize}")
    return bits


def _wrong(buffer: Buffer, actual: bytes, expected: bytes, noisy: Sequence[bytes]) -> np.ndarray:
    """Return a mask of the elements that no allowance explains."""
    a, e = _array(buffer, actual), _array(buffer, expected)
    if buffer.dtype not in FLOATS:
        return np.asarray(a != e)
    same = (_bits(a) == _bits(e)) | (np.isnan(a) & np.isnan(e))
    taints = buffer.taints or frozenset()
    if taints:
        same |= (a == 0) & (e == 0)
    if not taints - {SIGN_OF_ZERO} or not noisy:
        return ~same
    runs = [_array(buffer, data).astype(np.float64) for data in noisy]
    a, e = a.astype(np.float64), e.astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(run - e) for run in runs], axis=0)
        close = np.abs(a - e) <= SLACK * spread
    unstable = np.any([_class(run) != _class(e) for run in runs], axis=0)  # an overflow that depends on a rounding
    return ~(same | close | unstable)


def _class(array: np.ndarray) -> np.ndarray:
    """Return 0 for finite numbers, 1 and -1 for infinities, and 2 for NaN."""
    return np.where(np.isnan(array), 2, np.where(np.isinf(array), np.sign(array), 0))


def _described(buffer: Buffer, actual: bytes, expected: bytes, wrong: np.ndarray) -> str:
    """Describe the first element that differs."""
    a, e, first = _array(buffer, actual), _array(buffer, expected), int(np.argmax(wrong))
    taints = f", allowances: {', '.join(sorted(buffer.taints))}" if buffer.taints else ""
    counted = f"{int(wrong.sum())} of {wrong.size} elements of {buffer.name} ({buffer.dtype}{taints}) differ"
    return f"{counted}; element {first} is {e[first]!r} in sim and {a[first]!r} on the GPU"
