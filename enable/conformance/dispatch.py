"""Call every overload that the library serves, interleaved with calls that differ in one property.

The judge runs wrappers. This suite tests the path to them: cached decisions, shortcuts, native launches, graphs and
derived overloads. A case is called three times, so that its cached state is used. Then a neighbour is called twice, the
case again, and then the next neighbour. An item is an overload.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map

from enable.conformance import samples as of
from enable.conformance.answers import Probe, Tolerance, tensors, tolerances
from enable.conformance.options import SuiteOptions
from enable.serve.entries import Entry
from traces.overloads import bind, may_draw, positional, resolve, uninitialised, written
from traces.values import unpack
from verify.cases.opinfo import kept_cases
from verify.contract.derive import Plan
from verify.operators import elementwise

Arguments = dict[str, Any]
Place = tuple[str, int | None]  # a tensor's argument name, and its index if the argument is a list
REPEATS = 3  # the first call is watched for a shortcut, the second perhaps for its floats, and the third uses it
PLACES = 3  # neighbours are made for this many tensors of a call
GRAPHS = 8  # one overload in this many is compiled unless the check `graph` is named; compiling takes seconds
OTHER_DTYPES = {
    torch.float32: (torch.float64, torch.bfloat16, torch.int64),
    torch.bfloat16: (torch.float32,),
    torch.complex64: (torch.complex128, torch.float32),
    torch.int64: (torch.int32, torch.float32),
    torch.bool: (torch.uint8,),
}


class Neighbour(NamedTuple):
    """A call that differs in one property; `change` makes it from a copy of the case's arguments."""

    check: str
    name: str
    change: Callable[[Arguments], Arguments]


@cache
def _entries(options: SuiteOptions) -> Mapping[str, Entry]:
    """Return the entries for all overloads in the library, including unverified ones."""
    from enable.library import select

    return select(None, True, options.kernels(), Path(options.workspace), options.device).entries


def items(options: SuiteOptions) -> list[str]:
    """Return the overloads that the library serves."""
    return list(_entries(options))


def tolerance(item: str) -> Callable[[torch.dtype], Tolerance]:
    """Return PyTorch's default tolerance per dtype."""
    return tolerances()


def probes(item: str, options: SuiteOptions, wide: bool, ours: bool) -> Iterator[Probe]:
    """Yield the calls of an overload; their order matters, because earlier calls fill caches.

    Args:
        item: The overload.
        options: Options of the suite.
        wide: Convert the inputs to float64 or complex128.
        ours: Compile graphs for the library; natively they run eagerly.
    """
    from enable.workspace import Workspace

    op, plan = resolve(item), _entries(options)[item].plan
    argument_names = {a.name for a in op._schema.arguments}
    for dtype in options.dtype_names:
        cases = kept_cases(Workspace(Path(options.workspace)).cache, [plan.base], (dtype,))
        if len(cases) and dtype not in cases[0].dtypes and len(options.dtype_names) > 1 and dtype != "float32":
            continue  # without tensors of this dtype, float32's cases already cover it
        selected = of.chosen(cases, options.samples, lambda case: sum(map(math.prod, case.shapes)), options.elements)
        for index, case in enumerate(selected):
            base_arguments = tree_map(of.rebased, unpack(case.load(), device=options.device))
            arguments = _derived(op, plan, base_arguments)
            if arguments is not None and arguments.keys() <= argument_names:
                yield from _sequence(op, f"{dtype} {index}", arguments, options, (wide, ours))


def _derived(op: OpOverload, plan: Plan, base_arguments: Arguments) -> Arguments | None:
    """Convert the functional form's arguments to those of an in-place, `out=` or `_foreach_` overload.

    Return None if the functional form fails on a sample for `out=`.
    """
    if plan.direct:
        return base_arguments
    base = resolve(plan.base)
    names = [a.name for a in base._schema.arguments]
    arguments: Arguments = {}
    for position, argument in enumerate(a for a in op._schema.arguments if a.name != "out"):
        name = argument.name if argument.name in base_arguments else names[position] if position < len(names) else ""
        if name not in base_arguments:
            continue
        value, schema_type = base_arguments[name], str(argument.type)
        if plan.foreach and schema_type.startswith("List") and not isinstance(value, list | tuple):
            value = [value, of.copied(value)]
        elif schema_type == "number" and isinstance(value, torch.Tensor):
            value = 2
        arguments[argument.name] = value
    if plan.written == "out":
        args, kwargs = positional(base, bind(base, (), tree_map(of.copied, base_arguments)))
        try:
            result = base(*args, **kwargs)
        except Exception:  # noqa: BLE001 - a sample for another device
            return None
        result = [result, of.copied(result)] if plan.foreach else result
        arguments["out"] = tree_map(lambda t: torch.full_like(t, 1) if of.plain(t) else t, result)
    return arguments


def _sequence(
    op: OpOverload, prefix: str, arguments: Arguments, options: SuiteOptions, how: tuple[bool, bool]
) -> Iterator[Probe]:
    """Yield the calls for one case; `how` holds (inputs in float64, graphs compiled for the library)."""
    wide, ours = how
    case, first = partial(_probe, op, arguments, wide), f"{prefix} call 0"
    for turn in range(REPEATS):
        yield case("repeated", f"{prefix} call {turn}", like=first)
    for neighbour in _neighbours(op, arguments, options.device):
        if options.checks and neighbour.check not in options.checks:
            continue
        for turn in range(2):
            yield case(neighbour.check, f"{prefix} {neighbour.name} {turn}", neighbour.change)
        yield case("repeated", f"{prefix} after {neighbour.name}", like=first)
    number = hashlib.sha256(str(op).encode()).digest()[0]
    if "graph" in options.checks or (not options.checks and number % GRAPHS == 0 and prefix.endswith(" 0")):
        yield from _graph(op, prefix, arguments, options, ours)


def _probe(  # noqa: PLR0913 - the call, and its labels
    op: OpOverload, arguments: Arguments, wide: bool, check: str, label: str, change: Any = None, like: str = ""
) -> Probe:
    """Return a probe with a changed copy of the arguments."""
    inputs = tree_map(of.copied, arguments)
    inputs = change(inputs) if change else inputs
    inputs = tree_map(of.widened, inputs) if wide else inputs
    args, kwargs = positional(op, bind(op, (), inputs))
    is_elementwise = elementwise(op._name)
    return Probe(
        check, label, lambda: op(*args, **kwargs), inputs, uninitialised(op), elementwise=is_elementwise, like=like
    )


def _neighbours(op: OpOverload, arguments: Arguments, device: str) -> Iterator[Neighbour]:
    """Yield all calls that differ from this one in one property."""
    positions = list(_places(arguments))[:PLACES]
    targets = written(op)
    for position in positions:
        yield from _of_tensor(position, _at(arguments, position), position[0] in targets)
        if device != "cpu":
            yield Neighbour("device", f"{position[0]} 0-dim on the CPU", partial(_on_host, position=position))
    yield from _aliases(arguments, positions, targets)
    for name, value in arguments.items():
        kind = next((str(a.type) for a in op._schema.arguments if a.name == name), "")
        for other in _other_numbers(kind, value):
            yield Neighbour("number", f"{name}={other!r}", partial(_put, position=(name, None), value=other))


def _places(arguments: Arguments, most: int | None = 1) -> Iterator[Place]:
    """Yield the positions of tensors; in a list only the first `most` ones."""
    for name, value in arguments.items():
        if of.plain(value):
            yield name, None
        elif isinstance(value, list | tuple):
            yield from ((name, i) for i, v in enumerate(value[:most]) if of.plain(v))


def _at(arguments: Arguments, position: Place) -> torch.Tensor:
    """Return the tensor at a position."""
    name, index = position
    tensor: torch.Tensor = arguments[name] if index is None else arguments[name][index]
    return tensor


def _put(arguments: Arguments, position: Place, value: Any) -> Arguments:
    """Return the arguments with the value at a position replaced."""
    name, index = position
    if index is None:
        return {**arguments, name: value}
    items = list(arguments[name])
    items[index] = value
    return {**arguments, name: items}


def _of_tensor(position: Place, tensor: torch.Tensor, is_written: bool) -> Iterator[Neighbour]:
    """Yield neighbours in which one tensor differs."""
    name = position[0] if position[1] is None else f"{position[0]}[{position[1]}]"

    def neighbour(check: str, how: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Neighbour:
        return Neighbour(
            check, f"{name} {how}", lambda arguments: _put(arguments, position, change(_at(arguments, position)))
        )

    inexact = tensor.is_floating_point() or tensor.is_complex()
    if tensor.is_complex():
        yield neighbour("bit", "conjugated", of.with_conj)
    if inexact:
        yield neighbour("bit", "negated", of.with_neg)
        yield neighbour("bit", "zero tensor", of.zero_tensor)
        yield neighbour("gradient", "requires a gradient", lambda t: t.detach().requires_grad_())
    yield neighbour("offset", "one element further", of.with_offset)
    yield neighbour("stride", "strided", of.with_stride)
    if tensor.dim() > 1:
        yield neighbour("stride", "transposed", of.transposed)
    if tensor.dim() and tensor.shape[0] > 1 and not is_written:
        yield neighbour("stride", "expanded", lambda t: t[:1].expand(t.shape))
    for dtype in OTHER_DTYPES.get(tensor.dtype, ()):
        yield neighbour("dtype", f"as {str(dtype).removeprefix('torch.')}", partial(of.as_dtype, dtype=dtype))


def _on_host(arguments: Arguments, position: Place) -> Arguments:
    """Replace a tensor by a 0-dim CPU tensor."""
    return _put(arguments, position, torch.ones((), dtype=_at(arguments, position).dtype))


def _aliases(arguments: Arguments, places: list[Place], targets: frozenset[str]) -> Iterator[Neighbour]:
    """Yield neighbours in which two tensors share memory."""
    for i, a in enumerate(places):
        for b in places[i + 1 :]:
            first, second = _at(arguments, a), _at(arguments, b)
            if first.shape != second.shape or first.dtype != second.dtype:
                continue
            yield Neighbour("alias", f"{b[0]} is {a[0]}", partial(_same, a=a, b=b))
            yield Neighbour("alias", f"{b[0]} is a view of {a[0]}", partial(_same, a=a, b=b, view=True))
            if first.dim() and {a[0], b[0]} & targets:
                yield Neighbour("alias", f"{b[0]} overlaps {a[0]}", partial(_overlapping, a=a, b=b))


def _same(arguments: Arguments, a: Place, b: Place, view: bool = False) -> Arguments:
    """Replace tensor b by tensor a or by a view of it."""
    first = _at(arguments, a)
    return _put(arguments, b, first.view_as(first) if view else first)


def _overlapping(arguments: Arguments, a: Place, b: Place) -> Arguments:
    """Replace both tensors by views that overlap with an offset of one element."""
    first = _at(arguments, a)
    memory = torch.cat([first.reshape(-1), first.reshape(-1)[:1]])
    arguments = _put(arguments, a, memory[:-1].view(first.shape))
    return _put(arguments, b, memory[1:].view(first.shape))


def _other_numbers(kind: str, value: Any) -> Iterator[Any]:
    """Yield other values for a numeric argument."""
    kind = kind.removeprefix("Optional[").removesuffix("]")
    if isinstance(value, bool):
        yield from (not value,) if kind == "bool" else (int(value), not value)
    elif isinstance(value, int) and kind in ("int", "SymInt", "number"):
        yield from (value + 1, -value - 1) if kind != "number" else (value + 1, float(value), float("nan"), True)
    elif isinstance(value, float):
        yield from (value + 1, 0.0, -0.0, math.inf, math.nan)
        if kind == "number":
            yield from (round(value) if math.isfinite(value) else 1, True)


def _graph(op: OpOverload, prefix: str, arguments: Arguments, options: SuiteOptions, ours: bool) -> Iterator[Probe]:
    """Yield the case as a torch.compile graph that is called twice; the native response runs eagerly."""
    positions = list(_places(arguments, None))
    if (
        written(op)
        or may_draw(op._name)
        or uninitialised(op)
        or len(positions) != len(tensors(arguments))
        or not positions
    ):
        return
    inputs = tree_map(of.copied, arguments)

    def function(*values: torch.Tensor) -> Any:
        whole = inputs
        for position, value in zip(positions, values, strict=True):
            whole = _put(whole, position, value)
        args, kwargs = positional(op, bind(op, (), whole))
        return op(*args, **kwargs)

    def call() -> Any:
        run: Callable[..., Any] = function
        if ours:
            from enable.backend import enablekit

            torch._dynamo.reset()
            chosen = {"unverified": True, "workspace": options.workspace}
            run = torch.compile(function, backend=partial(enablekit, options=chosen), dynamic=False)
        values = [_at(inputs, position) for position in positions]
        return run(*values), run(*values)

    yield Probe("graph", f"{prefix} as a graph", call, inputs)
