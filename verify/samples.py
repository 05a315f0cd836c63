"""OpInfo's samples as cases: each sample's arguments, bound to the ATen overload that takes them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from traces import UserError
from traces.overloads import bind, call, name_of, resolve, written
from verify.cases import Case, case_of_values, unsupported

MAX_SAMPLES = 900  # of one operator and dtype, as in the published system


def overloads_of(operator: str) -> list[str]:
    """The functional overloads of an operator: `aten::exp` (that one), or an OpInfo name such as `nn.functional.gelu`.

    Raises UserError if there is no such operator.
    """
    if operator.startswith("aten::"):
        return [name_of(resolve(operator))]
    # linalg.inv is aten::linalg_inv, nn.functional.gelu is aten::gelu
    names = (operator.replace(".", "_"), operator.rpartition(".")[2])
    packet = next((getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)), None)
    if packet is None:
        known = sorted({info.name for infos in _infos().values() for info in infos})
        near = ", ".join(get_close_matches(operator, known, 3) or known[:3])
        raise UserError(f"unknown operator {operator!r}; did you mean {near}? overloads are written aten::exp")
    found: list[OpOverload] = [getattr(packet, name) for name in packet.overloads()]
    return [name_of(op) for op in found if _takes_tensors(op) and not any(a.is_out for a in op._schema.arguments)]


def _takes_tensors(op: OpOverload) -> bool:
    return any("Tensor" in str(a.type) for a in op._schema.arguments)


def opinfo_cases(overloads: list[str], dtypes: tuple[str, ...]) -> list[Case]:
    """A case of each sample that one of the overloads takes. dtypes: of the samples, such as float32 or int64."""
    wanted = [getattr(torch, d) for d in dtypes]
    bases = {o.removeprefix("aten::").partition(".")[0] for o in overloads}
    cases: dict[str, Case] = {}
    for info in itertools.chain.from_iterable(infos for name, infos in _infos().items() if name in bases):
        for dtype in (d for d in wanted if d in info.supported_dtypes("cpu")):
            for args, kwargs in _samples(info, dtype):
                case = _bound(overloads, args, kwargs) or _reached(overloads, info.op, args, kwargs)
                if case is not None:
                    cases.setdefault(case.id, case)
    return list(cases.values())


@cache
def _infos() -> dict[str, list[Any]]:
    """OpInfo's operators by the base name of their ATen operator."""
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for info in op_db:
        if info.name.startswith("sparse."):
            continue
        for name in {info.aten_name, info.name.rpartition(".")[2]} - {None}:
            found.setdefault(name, []).append(info)
    return found


def _samples(info: Any, dtype: torch.dtype) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    torch.manual_seed(0)
    with torch.no_grad():
        for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), MAX_SAMPLES):
            yield (sample.input, *sample.args), dict(sample.kwargs)


def _listed(op: OpOverload, arguments: dict[str, Any]) -> dict[str, Any]:
    """With a single number where the schema has a list of them as that list, as ATen takes it."""
    lists = {a.name for a in op._schema.arguments if "List[int]" in str(a.type)}
    return {n: [value] if n in lists and type(value) is int else value for n, value in arguments.items()}


def _bound(overloads: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Case | None:
    """The case of the first overload that answers; `out` and in-place forms get no sample of their own."""
    for overload in overloads:
        op = resolve(overload)
        names = {a.name for a in op._schema.arguments}
        if len(args) > len(names) or kwargs.keys() - names:
            continue
        try:
            arguments = _listed(op, bind(op, args, kwargs))
            call(op, {k: v.clone() if k in written(op) else v for k, v in arguments.items()})
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, KeyError):
            continue
        return _case(overload, arguments)
    return None


class _Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The first call of one of some overloads: arguments by name."""

    def __init__(self, overloads: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._overloads = frozenset(overloads)
        self.found: Case | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if self.found is None and name_of(func) in self._overloads:
            self.found = _case(name_of(func), bind(func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def _reached(overloads: list[str], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Case | None:
    """The case of the call that the function makes of one of the overloads, as where its arguments come in another
    order than the operator's."""
    try:
        with _Calls(overloads) as calls:
            function(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    found: Case | None = calls.found
    return found


def _case(overload: str, arguments: dict[str, Any]) -> Case | None:
    case = case_of_values(overload, **arguments)
    return None if unsupported(case.load().tree) else case
