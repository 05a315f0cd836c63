"""Cases of overloads that nothing of OpInfo calls, forward or backward: calls made of the schema alone.

`aten::native_dropout` is called on devices that have a fused dropout, `aten::rand` by no sample. An argument without a
default takes a few values of its type, and what ATen answers to is a case. A backward operator's arguments have to come
of one forward call, which no schema says, so of these none is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from traces.overloads import base_name, name_of, resolve
from verify.cases.case import Case, case_of_values, unsupported
from verify.cases.oracle import stands
from verify.cases.preconditions import broken, keeping

_SHAPES = ((5,), (3, 4), (2, 3, 4), (), (1, 6), (1, 2, 3, 4))
_EACH = 2  # cases of a shape
_TRIED = 24  # calls of a shape that are put to ATen
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "int": (1, 0),
    "SymInt": (1, 0),
    "float": (0.5, 2.0),
    "number": (0.5, 2),
    "bool": (True, False),
    "Optional[bool]": (True, None, False),
}


def schema_cases(overload: str, dtypes: tuple[torch.dtype, ...]) -> list[Case]:
    """Calls of tensors of each of the dtypes and of several shapes that ATen answers; none of a backward operator."""
    op = resolve(overload)
    required = [a for a in op._schema.arguments if not a.has_default_value()]
    if "backward" in base_name(op) or any(a.is_out for a in required):
        return []
    tensors = [a.name for a in required if "Tensor" in str(a.type)]
    cases: dict[str, Case] = {}
    for dtype, shape in itertools.product(dtypes, _SHAPES):
        choices = [list(_values(a, shape, dtype, a.name != next(iter(tensors), None))) for a in required]
        # Without tensors a device is named, which is the platform's wherever this is run: else the call is the CPU's.
        whole = {"dtype": dtype, "device": torch.device("cpu")}
        given = {} if tensors else {a.name: whole[a.name] for a in op._schema.arguments if a.name in whole}
        made = 0
        for values in itertools.islice(itertools.product(*choices), _TRIED):
            arguments = keeping(overload, {**dict(zip((a.name for a in required), values, strict=True)), **given})
            if made < _EACH and broken(overload, arguments) is None and stands(overload, arguments):
                case = case_of_values(name_of(op), **arguments)
                if not unsupported(case.load().tree):
                    cases.setdefault(case.id, case)
                    made += 1
    return list(cases.values())


def _values(argument: Any, shape: tuple[int, ...], dtype: torch.dtype, later: bool) -> Iterator[Any]:
    """What stands for an argument in a call of this shape. later: a tensor has another before it."""
    named = str(argument.type)
    if "Tensor" in named:
        tensor = _tensor(shape, dtype)
        several = named.startswith("List")
        yield [tensor, tensor + 1] if several else tensor
        if later and not several:
            large = (tensor.abs() if tensor.is_complex() else tensor) > 1
            sparse = tensor * large
            yield from (tensor.new_ones(()), large, sparse.to_sparse())
            if tensor.dim() > 1:
                yield sparse.to_sparse(1)
    elif named in ("List[int]", "List[SymInt]"):
        yield list(shape)
    elif named in _NUMBERS:
        yield from _NUMBERS[named]
    elif named.startswith("Optional"):
        yield None


def _tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Numbers of [0, 2), of which probabilities can be made, too: a half of them are under 1."""
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64) * 2
    return numbers.to(dtype)
