"""Cases built from the schema alone, for overloads that no OpInfo sample calls, forward or backward.

For example, `aten::native_dropout` is called only on devices with a fused dropout, and no sample calls
`aten::rand`. Each argument without a default takes a few values that fit its type; every call that ATen answers
becomes a case. Backward operators get no such cases, because their arguments have to come from one forward call
and the schema does not state which.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from traces.overloads import base_name, name_of, resolve
from verify.cases.case import Case, case_of_values
from verify.cases.oracle import stands
from verify.cases.packed import unsupported
from verify.cases.preconditions import broken, keeping

_SHAPES = ((5,), (3, 4), (2, 3, 4), (), (1, 6), (1, 2, 3, 4))
_EACH = 2  # cases per shape
_TRIED = 24  # calls per shape that are tried with ATen
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "int": (1, 0),
    "SymInt": (1, 0),
    "float": (0.5, 2.0),
    "number": (0.5, 2),
    "bool": (True, False),
    "Optional[bool]": (True, None, False),
}


def schema_cases(overload: str, dtypes: tuple[torch.dtype, ...]) -> list[Case]:
    """Return calls with tensors in each dtype and in several shapes that ATen answers; empty for backward operators."""
    op = resolve(overload)
    required = [a for a in op._schema.arguments if not a.has_default_value()]
    if "backward" in base_name(op) or any(a.is_out for a in required):
        return []
    tensors = [a.name for a in required if "Tensor" in str(a.type)]
    cases: dict[str, Case] = {}
    for dtype, shape in itertools.product(dtypes, _SHAPES):
        choices = [list(_values(a, shape, dtype, a.name != next(iter(tensors), None))) for a in required]
        # Without tensors a CPU device is passed explicitly; on another machine the platform's device replaces
        # it. A call without a device would always run on the CPU.
        whole = {"dtype": dtype, "device": torch.device("cpu")}
        device_options = {} if tensors else {a.name: whole[a.name] for a in op._schema.arguments if a.name in whole}
        count = 0
        for values in itertools.islice(itertools.product(*choices), _TRIED):
            arguments = keeping(
                overload, {**dict(zip((a.name for a in required), values, strict=True)), **device_options}
            )
            if count < _EACH and broken(overload, arguments) is None and stands(overload, arguments):
                case = case_of_values(name_of(op), **arguments)
                if not unsupported(case.load().tree):
                    cases.setdefault(case.id, case)
                    count += 1
    return list(cases.values())


def _values(argument: Any, shape: tuple[int, ...], dtype: torch.dtype, later: bool) -> Iterator[Any]:
    """Yield values for one argument in a call with this shape.

    `later` is True if another tensor precedes this argument.
    """
    type_name = str(argument.type)
    if "Tensor" in type_name:
        tensor = _tensor(shape, dtype)
        is_list = type_name.startswith("List")
        yield [tensor, tensor + 1] if is_list else tensor
        if later and not is_list:
            large = (tensor.abs() if tensor.is_complex() else tensor) > 1
            sparse = tensor * large
            yield from (tensor.new_ones(()), large, sparse.to_sparse())
            if tensor.dim() > 1:
                yield sparse.to_sparse(1)
    elif type_name in ("List[int]", "List[SymInt]"):
        yield list(shape)
    elif type_name in _NUMBERS:
        yield from _NUMBERS[type_name]
    elif type_name.startswith("Optional"):
        yield None


def _tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return numbers in [0, 2); half are below 1, so they can serve as probabilities too."""
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64) * 2
    return numbers.to(dtype)
