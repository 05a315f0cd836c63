"""Cases in integer dtypes that a kernel file lists and of which there is none, made of a case in floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from traces.values import unpack
from verify.cases.case import Case, case_of_values
from verify.cases.oracle import stands

_LARGEST = 100  # of the values, which fits into int8


def in_integers(cases: Sequence[Case], dtypes: Sequence[str]) -> list[Case]:
    """Return a case in each of these dtypes that is an integer's, if ATen takes it and none of the cases has it."""
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
            made = case_of_values(cases[0].overload, **arguments)
            made_cases.append(replace(made, signature=f"as {dtype}".replace("torch.", "")))
    return made_cases
