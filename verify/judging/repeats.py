"""A case that passed is run again: in other orders, with other configurations, with new contents, far apart."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from traces.overloads import resolve, written
from traces.values import Packed, by_storage, pack, unpack
from verify.cases.bags import changed_by_strides
from verify.cases.case import (
    Case,
    Expected,
    NoReference,
    contents,
    holds_sparse,
    holds_special,
    reference,
    same_bits,
)
from verify.cases.elements import frozen, mapped
from verify.cases.preconditions import has_preconditions, keeping
from verify.child.tuning import MAX_CONFIGURATIONS
from verify.comparison.compare import compare, is_view
from verify.comparison.open_writes import leaves_open
from verify.contract.random_state import Philox
from verify.judging.job import Job
from verify.judging.problems import Problem
from verify.outcome import Outcome
from verify.platforms import EXECUTE

ORDERS = 2  # other ones in which the programs of a grid run
APART = "apart", "with 2^31 elements from one row to the next"
ACROSS = "across", "with 2^31 elements from the first row to the last"
_FREE_ORDER = re.compile(r"\b(?:atomic_(?:add|xchg|cas)|autotune)\b")  # of additions: by chance, or as it was tuned

Ask: TypeAlias = Callable[[Packed, dict[str, Any], str, tuple[str, str]], Packed]
"""A child's answer to a call and a request. Raises problems.Ended with what is wrong; told `how` and as a rule of a
layer if it fails."""


def configured(case: str, number: int, **request: Any) -> dict[str, Any]:
    """A request in which autotuners take another configuration for each number, and for 0 another for each case."""
    return {**request, "configuration": zlib.crc32(case.encode()) % MAX_CONFIGURATIONS + number}


class Repeats:
    """Of one case. philox: what it draws from."""

    def __init__(self, job: Job, mode: str, case: str, philox: Philox, ask: Ask) -> None:
        self._job = job
        self._mode = mode
        self._case = case
        self._philox = philox
        self._ask = ask

    def special(self, expected: Expected, configurations: int) -> Problem | None:
        """A case of NaN or infinities with every configuration of the autotuner. Raises Ended."""
        for number in range(1, configurations if holds_special(expected.before) else 1):
            how = "with another configuration of its autotuner"
            _, problem = self._compared(expected, configured(self._case, number, seed=0), how, "configuration")
            if problem is not None:
                return problem
        return None

    def again(self, expected: Expected, got: Packed, configurations: int, far: bool) -> Problem | None:
        """With the programs in other orders and every configuration of an autotuner, then in the same memory with new
        contents; `far`: then with rows that lie far apart. Raises Ended."""
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
        return self._new_contents(expected) or (self._far(expected) if far else None)

    def _new_contents(self, expected: Expected) -> Problem | None:
        changed = mapped(expected.before, torch.neg)
        overload = self._job.plan.overload
        if has_preconditions(overload):
            kept = frozen(pack(keeping(overload, unpack(changed)))).data
            pairs = zip(changed.data, kept, strict=True)
            changed = replace(changed, data=[None if old is None else new for old, new in pairs])
        try:
            other = reference(Case("", overload, "", lambda: changed), self._philox)
        except NoReference:
            return None
        how = "on the same memory with new contents"
        return self._compared(other, {"seed": 0, "reuse": True}, how, "contents")[1]

    def _far(self, expected: Expected) -> Problem | None:
        """As slices of tensors of many gigabytes are: with offsets that need 64 bits, and, of a kernel file, offsets
        that do although no stride does. Only where nothing is written, no result is a view and no
        storage has a size of its own."""
        overload = self._job.plan.overload
        if (
            self._mode != EXECUTE
            or written(resolve(overload))
            or is_view(expected)
            or holds_sparse(expected.before.tree)
            or by_storage(expected.before.tree)
            or changed_by_strides(overload, expected.before)
        ):
            return None
        for far, how in (APART, ACROSS) if self._job.strict else (APART,):
            problem = self._compared(expected, {"seed": 0, "far": far}, how, "far")[1]
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


def _same_results(a: Packed, b: Packed) -> bool:
    """To the bit, element by element: what lies between the elements of a result is nobody's."""
    return a.tensors == b.tensors and all(same_bits(contents(a, i), contents(b, i)) for i in range(len(a.tensors)))
