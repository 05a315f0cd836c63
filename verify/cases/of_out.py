"""Cases of `out=` overloads, made from cases for their functional forms.

Each call writes into a tensor with the result's own dtype, and some also into other dtypes, because the dtype
of `out` may decide in which precision a reduction computes.
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
_INTO_OTHERS = 6  # number of calls that are also made with other dtypes for `out`


def out_cases(overload: str, functional: Iterable[Case]) -> list[Case]:
    """Return cases for an overload that writes its single result to `out`.

    `functional` holds cases for its functional form.
    """
    op = resolve(overload)
    names = [a.name for a in op._schema.arguments if a.name != "out"]
    cases: dict[str, Case] = {}
    into_others = 0
    for case in functional:
        bound = bind(resolve(case.overload), (), unpack(case.load()))
        arguments = {name: bound[name] for name in names if name in bound}
        try:
            result = call(resolve(case.overload), dict(bound))
        except ERRORS:
            continue
        if len(arguments) < len(names) or not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
            continue
        varied = into_others < _INTO_OTHERS and result.numel() > 0
        into_others += varied
        for dtype in dict.fromkeys((result.dtype, *(_DTYPES if varied else ()))):
            variant = {**arguments, "out": torch.zeros(result.shape, dtype=dtype)}
            if stands(overload, variant):
                variant_case = case_of_values(overload, **variant)
                cases.setdefault(variant_case.id, variant_case)
    return list(cases.values())


def writes_out(overload: str) -> bool:
    """Return True if the overload writes its result to `out`, and nothing else."""
    return [a.name for a in resolve(overload)._schema.arguments if a.is_out] == ["out"]
