"""Repeat a case that passed: in other orders, with other configurations, with new contents, and with distant rows."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from traces.facts import tagged
from traces.overloads import resolve, written
from traces.values import Packed, by_storage, pack, unpack
from verify.cases.bags import changed_by_strides
from verify.cases.case import Case, Expected, NoReference, reference
from verify.cases.elements import frozen, mapped
from verify.cases.packed import contents, holds_sparse, holds_special, same_bits, tensor_names
from verify.cases.preconditions import has_preconditions, keeping
from verify.cases.soundness import ERRORS
from verify.child.tuning import MAX_CONFIGURATIONS
from verify.comparison.compare import compare, is_view
from verify.comparison.open_writes import leaves_open
from verify.contract.random_state import Philox
from verify.judging.job import Job
from verify.judging.problems import Problem
from verify.outcome import Outcome
from verify.platforms import EXECUTE

_TRANSPOSED = tagged("transposed_factors")
ORDERS = 2  # further orders in which the program instances of a grid run
APART = "apart", "with 2^31 elements from one row to the next"
ACROSS = "across", "with 2^31 elements from the first row to the last"
HARDWARE = "rounded as hardware may (quotients, products in sums), with zeros in masked lanes"
# additions in an order that depends on chance, on tuning, or on the GPU
_FREE_ORDER = re.compile(r"\b(?:atomic_(?:add|xchg|cas)|autotune|multi_processor_count|is_cuda)\b")

Ask: TypeAlias = Callable[[Packed, dict[str, Any], str, tuple[str, str]], Packed]
"""Function that sends a request and returns the child's answer.

It raises problems.Ended with the problem. If the child fails, the message contains `how`, and the pair has the
layer and the rule.
"""


def configured(case: str, number: int, **request: Any) -> dict[str, Any]:
    """Return a request whose autotuner configuration depends on `number`, and on the case for number 0."""
    return {**request, "configuration": zlib.crc32(case.encode()) % MAX_CONFIGURATIONS + number}


class Repeats:
    """Repetitions of one case; `philox` is its key and counter."""

    def __init__(self, job: Job, mode: str, case: str, philox: Philox, ask: Ask) -> None:
        self._job = job
        self._mode = mode
        self._case = case
        self._philox = philox
        self._ask = ask

    def special(self, expected: Expected, configurations: int) -> Problem | None:
        """Repeat a case with NaN or infinities for every autotuner configuration; raise Ended for a failure."""
        for number in range(1, configurations if holds_special(expected.before) else 1):
            how = "with another configuration of its autotuner"
            _, problem = self._compared(expected, configured(self._case, number, seed=0), how, "configuration")
            if problem is not None:
                return problem
        return None

    def again(self, expected: Expected, got: Packed, configurations: int, far: bool) -> Problem | None:
        """Repeat a case; raise Ended for a failure.

        It runs with the program instances in other orders and with every configuration of an autotuner, and then
        in the same memory with new contents. With `far`, it also runs with distant rows.
        """
        loose = leaves_open(expected) or any(
            _FREE_ORDER.search(k.source) for k in (self._job.kernel, *self._job.reached)
        )
        how = "with its programs in another order"
        how += ", and another configuration of its autotuner" if configurations > 1 else ""
        for seed in range(1, max(ORDERS + 1, configurations)):
            other, problem = self._compared(expected, configured(self._case, seed, seed=seed), how, "order")
            if problem is None and not loose and not _same_results(got, other):
                text = f"the same call again, {how}: the results are not the same to the bit"
                problem = Problem(Outcome.WRONG, "repeat", text, rule="order")
            if problem is not None:
                return problem
        return self._new_contents(expected) or self._as_hardware(expected) or (self._far(expected) if far else None)

    def _as_hardware(self, expected: Expected) -> Problem | None:
        """Repeat a case with the roundings of a GPU, and zeros in masked lanes."""
        if self._mode != EXECUTE:
            return None
        return self._compared(expected, {"seed": 0, "hardware": True}, HARDWARE, "hardware")[1]

    def _new_contents(self, expected: Expected) -> Problem | None:
        changed = mapped(expected.before, torch.neg)
        overload = self._job.plan.overload
        if has_preconditions(overload):
            valid = frozen(pack(keeping(overload, unpack(changed)))).data
            pairs = zip(changed.data, valid, strict=True)
            changed = replace(changed, data=[None if old is None else new for old, new in pairs])
        try:
            other = reference(Case("", overload, "", lambda: changed), self._philox, expected.flushes)
        except NoReference:
            return None
        how = "on the same memory with new contents"
        return self._compared(other, {"seed": 0, "reuse": True}, how, "contents")[1]

    def _far(self, expected: Expected) -> Problem | None:
        """Repeat a case with rows far apart, like slices of tensors with many gigabytes.

        Offsets then need 64 bits. For a kernel file, a second layout needs 64-bit offsets although each stride
        fits into 32 bits. The check applies only if nothing is written, no result is a view, and no storage has a
        size of its own.
        """
        overload = self._job.plan.overload
        if (
            self._mode != EXECUTE
            or written(resolve(overload))
            or is_view(expected)
            or holds_sparse(expected.before.tree)
            or by_storage(expected.before.tree)
            or changed_by_strides(overload, expected.before)
            or overload in _TRANSPOSED
        ):
            return None
        names = _taken_with_gaps(expected, self._philox)
        if not names:
            return None
        for far, how in (APART, ACROSS) if self._job.strict else (APART,):
            problem = self._compared(expected, {"seed": 0, "far": [far, names]}, how, "far")[1]
            if problem is not None:
                return problem
        return None

    def _compared(
        self, expected: Expected, request: dict[str, Any], how: str, rule: str
    ) -> tuple[Packed, Problem | None]:
        got = self._ask(expected.before, request, how, ("repeat", rule))
        mismatch = compare(self._job.plan.overload, expected, got, self._job.strict)
        if mismatch is None:
            return got, None
        text, report = (f"the same call again, {how}:{gap}" for gap in (f" {mismatch.detail}", f"\n{mismatch.report}"))
        return got, Problem(Outcome.WRONG, "repeat", text, report, rule)


def _taken_with_gaps(expected: Expected, philox: Philox) -> list[str]:
    """Return the names of the tensor arguments that ATen takes with a gap between the rows; some must be contiguous."""
    taken = []
    arguments = unpack(expected.before)
    for name in dict.fromkeys(path.partition("[")[0] for path in tensor_names(expected.before.tree)):
        changed = pack({**arguments, name: _with_gaps(arguments[name])})
        try:
            expected.ask(expected.overload, frozen(changed), philox)
            taken.append(name)
        except ERRORS:
            continue
    return taken


def _with_gaps(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_with_gaps, value))
    if not isinstance(value, torch.Tensor) or not value.dim() or value.layout is not torch.strided:
        return value
    pair = torch.stack([value, value], min(value.dim(), 1))
    return pair.select(1, 0)


def _same_results(a: Packed, b: Packed) -> bool:
    """Return True if the results are bitwise equal; memory between the elements of a result is ignored."""
    return a.tensors == b.tensors and all(same_bits(contents(a, i), contents(b, i)) for i in range(len(a.tensors)))
