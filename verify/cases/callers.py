"""Cases of overloads that no OpInfo sample calls by name, taken from other operators that call them.

For example, softmax calls `aten::_softmax`, and the backward pass of relu calls `aten::threshold_backward`. The
file callers.json lists the operators that call each overload. `python -m verify.cases.calling` writes it by
running all operators.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from traces.overloads import bind, name_of
from verify.cases.case import Case, case_of_values
from verify.cases.packed import unsupported

FILE = Path(__file__).with_suffix(".json")
MOST_CALLERS = 8  # operators whose calls become the cases of one overload
_MOST_CASES = 40  # from one operator and dtype

Samples = Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]  # a function and its arguments


@cache
def callers(overload: str) -> tuple[str, ...]:
    """Return the OpInfo operators that call the overload in their forward or backward pass.

    Operators that call the fewest other overloads come first.
    """
    return tuple(json.loads(FILE.read_text()).get(overload, ()))


def called_cases(overloads: Iterable[str], samples: Callable[[str], Samples]) -> list[Case]:
    """Return a case for each call that the overloads' callers make.

    `samples` returns one OpInfo operator's samples.
    """
    cases: dict[str, Case] = {}
    for overload in overloads:
        for operator in callers(overload):
            operator_cases: dict[str, Case] = {}
            for function, args, kwargs in samples(operator):
                for arguments in _calls(overload, function, args, kwargs):
                    case = case_of_values(overload, **arguments)
                    if not unsupported(case.load().tree):
                        operator_cases.setdefault(case.id, case)
                if len(operator_cases) >= _MOST_CASES:
                    break
            cases |= operator_cases
    return list(cases.values())


def _calls(overload: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []

    def see(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if name_of(op) == overload:
            copied = {n: _copied(v) for n, v in bind(op, args, kwargs).items()}
            calls.append(copied)

    run(function, args, kwargs, see)
    return calls


def _copied(value: Any) -> Any:
    """Return a copy, because this call or a later one may write to the value."""
    if isinstance(value, list | tuple):
        return type(value)(_copied(v) for v in value)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value
    detached = value.detach()
    return torch.empty_strided(detached.shape, detached.stride(), dtype=detached.dtype).copy_(detached)


class _Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    def __init__(self, see: Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._see = see

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because the default makes the first call import torch._dynamo, which takes 1 to 2 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self._see(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def run(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    see: Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], None],
) -> None:
    """Call the function and run its backward pass, as far as both succeed.

    `see` is called with each ATen call: the overload, its positional arguments and its keyword arguments.
    """
    args = tuple(_differentiable(a) for a in args)
    try:
        with warnings.catch_warnings(), torch.enable_grad(), _Seen(see):
            warnings.simplefilter("ignore")
            result = function(*args, **kwargs)
            roots = [t for t in _flat(result) if t.requires_grad and t.grad_fn is not None]
            torch.autograd.backward(roots, [torch.ones_like(t) * 0.75 for t in roots])
    except Exception:  # noqa: BLE001 - ATen may raise anything; the calls made until then count
        return


def _differentiable(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach().requires_grad_()
    return value


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in _flat(v)] if isinstance(value, list | tuple) else []
