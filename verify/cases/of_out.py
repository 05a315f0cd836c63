"""Calls of `out=` overloads, made of those of their functional forms: into a result as it is, and of other dtypes.

The dtype of `out` may decide what a reduction computes in.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from traces.overloads import bind, call, resolve
from traces.values import unpack
from verify.cases.case import Case, case_of_values
from verify.cases.oracle import stands
from verify.cases.soundness import ERRORS

_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.complex64)
_INTO_OTHERS = 6  # calls that are made into results of other dtypes


def out_cases(overload: str, functional: Iterable[Case]) -> list[Case]:
    """Cases of an overload that writes the one result `out`. functional: cases of its functional form."""
    op = resolve(overload)
    names = [a.name for a in op._schema.arguments if a.name != "out"]
    cases: dict[str, Case] = {}
    into_others = 0
    for given in functional:
        bound = bind(resolve(given.overload), (), unpack(given.load()))
        arguments = {name: bound[name] for name in names if name in bound}
        try:
            result = call(resolve(given.overload), dict(bound))
        except ERRORS:
            continue
        if len(arguments) < len(names) or not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
            continue
        telling = into_others < _INTO_OTHERS and result.numel() > 0
        into_others += telling
        for dtype in dict.fromkeys((result.dtype, *(_DTYPES if telling else ()))):
            variant = {**arguments, "out": torch.zeros(result.shape, dtype=dtype)}
            if stands(overload, variant):
                case = case_of_values(overload, **variant)
                cases.setdefault(case.id, case)
    return list(cases.values())


def writes_out(overload: str) -> bool:
    """Whether it writes its result to `out`, and nothing else."""
    return [a.name for a in resolve(overload)._schema.arguments if a.is_out] == ["out"]
