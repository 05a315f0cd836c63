"""Repeat a case that passed: in other orders, with other configurations, with new contents, and with distant rows."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection
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
from verify.comparison.deviation import is_wrong
from verify.comparison.laws import law_of
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
_WIDENS = re.compile(r"\btl\.int64\b")  # the source knows 64-bit offsets

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
        changed = mapped(expected.before, _negated)
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

        Offsets then need 64 bits. A second layout needs them although each stride fits into 32 bits, unless a
        bare file computes everything in its strides' type. Rows lie along each dimension in turn. The check
        applies only if nothing is written, no result is a view, and no storage has a size of its own.
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
        wide = self._job.strict or any(_WIDENS.search(k.source) for k in (self._job.kernel, *self._job.reached))
        for dim in range(max((len(ref.shape) for ref in expected.before.tensors), default=0)):
            names = _taken_with_gaps(expected, self._philox, dim)
            call = self._with_rows_along(dim, expected, names) if names else None
            for far, how in (APART, ACROSS) if wide else (APART,):
                how = how if dim == 0 else f"{how} (dimension {dim})"
                request = {"seed": 0, "far": [far, names, dim]}
                problem = None if call is None else self._compared(call, request, how, "far", dim > 0)[1]
                if problem is not None:
                    return problem
        return None

    def _with_rows_along(self, dim: int, expected: Expected, names: Collection[str]) -> Expected | None:
        """Return the call with tensors whose outermost dimension in memory is `dim`.

        Return None if ATen does not answer, or answers otherwise: some functions expect contiguous tensors
        without checking for them.
        """
        if dim == 0:
            return expected
        arguments = unpack(expected.before)
        moved = pack({name: _with_gaps(v, dim) if name in names else v for name, v in arguments.items()})
        case = Case("", self._job.plan.overload, "", lambda: frozen(moved))
        try:
            call = reference(case, self._philox, expected.flushes)
        except NoReference:
            return None
        results = range(len(expected.before.tensors), len(expected.native.tensors))
        overload = self._job.plan.overload
        changed = law_of(overload) is None and any(is_wrong(overload, expected, call.native, i) for i in results)
        return None if changed else call

    def _compared(
        self, expected: Expected, request: dict[str, Any], how: str, rule: str, any_order: bool = False
    ) -> tuple[Packed, Problem | None]:
        got = self._ask(expected.before, request, how, ("repeat", rule))
        mismatch = compare(self._job.plan.overload, expected, got, self._job.strict, any_order)
        if mismatch is None:
            return got, None
        text, report = (f"the same call again, {how}:{gap}" for gap in (f" {mismatch.detail}", f"\n{mismatch.report}"))
        return got, Problem(Outcome.WRONG, "repeat", text, report, rule)


def _negated(t: torch.Tensor) -> torch.Tensor:
    return -t if t.dtype.itemsize > 1 else (-t.float()).to(t.dtype)  # 8-bit floats have no operator for it


def _taken_with_gaps(expected: Expected, philox: Philox, dim: int) -> list[str]:
    """Return the names of the tensor arguments that ATen takes with gaps along `dim`; some must be contiguous."""
    taken = []
    arguments = unpack(expected.before)
    for name in dict.fromkeys(path.partition("[")[0] for path in tensor_names(expected.before.tree)):
        changed = pack({**arguments, name: _with_gaps(arguments[name], dim)})
        try:
            expected.ask(expected.overload, frozen(changed), philox)
            taken.append(name)
        except ERRORS:
            continue
    return taken


def _with_gaps(value: Any, dim: int) -> Any:
    """Return tensors with `dim` as the outermost dimension in memory, and a gap behind each element."""
    if isinstance(value, list | tuple):
        return type(value)(_with_gaps(v, dim) for v in value)
    if not isinstance(value, torch.Tensor) or value.dim() <= dim or value.layout is not torch.strided:
        return value
    rows = value.movedim(dim, 0)
    return torch.stack([rows, rows], 1).select(1, 0).movedim(0, dim)


def _same_results(a: Packed, b: Packed) -> bool:
    """Return True if the results are bitwise equal; memory between the elements of a result is ignored."""
    return a.tensors == b.tensors and all(same_bits(contents(a, i), contents(b, i)) for i in range(len(a.tensors)))
