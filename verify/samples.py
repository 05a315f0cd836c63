"""OpInfo's samples as cases: each sample's arguments, bound to the ATen overload that takes them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import torch
from torch._ops import OpOverload

from traces import UserError
from traces.overloads import bind, call, name_of, resolve, written
from verify.cases import Case, case_of_values, unsupported

MAX_SAMPLES = 900  # of one operator and dtype, as in the published system
_INTEGERS = (torch.bool, torch.int32, torch.int64)


def overloads_of(operator: str) -> list[str]:
    """The functional overloads of an operator: `aten::exp` (that one), or an OpInfo name such as `nn.functional.gelu`.

    Raises UserError if there is no such operator.
    """
    if operator.startswith("aten::"):
        return [name_of(resolve(operator))]
    packet = getattr(torch.ops.aten, operator.rpartition(".")[2], None)
    if packet is None:
        names = sorted(_infos())
        near = ", ".join(get_close_matches(operator, names, 3) or names[:3])
        raise UserError(f"unknown operator {operator!r}; did you mean {near}? overloads are written aten::exp")
    found: list[OpOverload] = [getattr(packet, name) for name in packet.overloads()]
    return [name_of(op) for op in found if _takes_tensors(op) and not any(a.is_out for a in op._schema.arguments)]


def _takes_tensors(op: OpOverload) -> bool:
    return any("Tensor" in str(a.type) for a in op._schema.arguments)


def opinfo_cases(overloads: list[str], dtypes: tuple[str, ...]) -> list[Case]:
    """A case of each sample that one of the overloads takes, in dtypes that both name; integer ones if asked for.

    dtypes: of floating tensors, such as float32; `integers` stands for bool, int32 and int64.
    """
    wanted = [getattr(torch, d) for d in dtypes if d != "integers"]
    wanted += _INTEGERS if "integers" in dtypes else ()
    bases = {o.removeprefix("aten::").partition(".")[0] for o in overloads}
    cases: dict[str, Case] = {}
    for info in itertools.chain.from_iterable(infos for name, infos in _infos().items() if name in bases):
        for dtype in (d for d in wanted if d in info.supported_dtypes("cpu")):
            for arguments in _samples(info, dtype):
                case = _bound(overloads, *arguments)
                if case is not None:
                    cases.setdefault(case.id, case)
    return list(cases.values())


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
        try:
            arguments = _listed(op, bind(op, args, kwargs))
            call(op, {k: v.clone() if k in written(op) else v for k, v in arguments.items()})
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, KeyError):
            continue
        case = case_of_values(overload, **arguments)
        return None if unsupported(case.load().tree) else case
    return None
