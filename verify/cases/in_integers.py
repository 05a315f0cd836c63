"""Cases in the integer dtypes that a kernel file lists but no case covers, converted from a floating-point case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from traces.values import unpack
from verify.cases.case import Case, case_of_values
from verify.cases.oracle import stands

_LARGEST = 100  # largest value, which fits into int8


def in_integers(cases: Sequence[Case], dtypes: Sequence[str]) -> list[Case]:
    """Return a case for each missing integer dtype that ATen accepts.

    Args:
        cases: Existing cases; the first one supplies the values, rounded towards zero.
        dtypes: Names of the dtypes to cover. Floating and complex dtypes, and those that a case already has,
            are skipped.
    """
    known = {dtype for case in cases for dtype in case.dtypes}
    made_cases = []
    for dtype in (getattr(torch, name) for name in dtypes if name not in known):
        if dtype.is_floating_point or dtype.is_complex or not cases:
            continue
        arguments = unpack(cases[0].load())
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                arguments[name] = value.nan_to_num(0, 0, 0).abs().clamp(max=_LARGEST).to(dtype)
        if stands(cases[0].overload, arguments):
            new_case = case_of_values(cases[0].overload, **arguments)
            made_cases.append(replace(new_case, signature=f"as {dtype}".replace("torch.", "")))
    return made_cases
