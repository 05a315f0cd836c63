"""Check that a set of cases detects wrong answers, which are derived from right ones.

A mutant is an answer that a lazy kernel would give: its input, zeros, a result with an argument ignored or at its
usual value, an intermediate rounded to bfloat16, nothing beyond a size, or one class of values lost. A set of
cases that a mutant passes is too weak, unless the mutant equals the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from traces.overloads import bind, call, resolve, written
from traces.values import Packed, pack, unpack
from verify.cases.case import Case, Expected, NoReference, reference
from verify.comparison.compare import compare
from verify.operators import copies, signs_zeros

Arguments = dict[str, Any]
Mutant = Callable[[str, Arguments], Any]


@dataclass
class Caught:
    """Results for one overload.

    Attributes:
        overload: Overload name.
        cases: How many cases were used.
        itself: How many times ATen's own answer passed.
        mutants: How many cases detect each mutant that differs from the operator in some bit.
        equal: Mutants that are equal to the operator.
    """

    overload: str
    cases: int = 0
    itself: int = 0
    mutants: dict[str, int] = field(default_factory=dict)
    equal: set[str] = field(default_factory=set)

    @property
    def missed(self) -> list[str]:
        """Mutants that differ from the operator, but that no case detects."""
        return [name for name, noticed in self.mutants.items() if not noticed]


def try_mutants(overload: str, cases: list[Case], enough: int | None = None) -> Caught:
    """Compare ATen's own answer and every mutant with the reference.

    Args:
        overload: Overload name.
        cases: Cases to use.
        enough: How many detections suffice, so that a mutant is not tried again.
    """
    caught = Caught(overload)
    for case in cases:
        try:
            expected = reference(case)
        except NoReference:
            continue
        caught.cases += 1
        honest = _answer(overload, expected, _honest)
        assert honest is not None
        caught.itself += compare(overload, expected, honest) is None
        for name, mutant in _mutants(overload):
            if enough is not None and caught.mutants.get(name, 0) >= enough:
                continue
            got = _answer(overload, expected, mutant)
            if got is None or _same(got, honest):
                caught.equal.add(name)
            else:
                noticed = compare(overload, expected, got) is not None
                caught.mutants[name] = caught.mutants.get(name, 0) + noticed
    caught.equal -= caught.mutants.keys()
    return caught


def _same(a: Packed, b: Packed) -> bool:
    return a.tree == b.tree and a.tensors == b.tensors and a.data == b.data


def _answer(overload: str, expected: Expected, answer: Mutant) -> Packed | None:
    """Return a mutant's answer, or None if it cannot be computed."""
    arguments = unpack(expected.before)
    try:
        with torch.no_grad():
            result = answer(overload, arguments)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, StopIteration):
        return None
    got = pack({**arguments, "return": result})
    got.data = [None if d is None else bytes(d) for d in got.data]
    return got


def _honest(overload: str, arguments: Arguments) -> Any:
    op = resolve(overload)
    return call(op, bind(op, (), arguments))


def _mutants(overload: str) -> Iterator[tuple[str, Mutant]]:
    if not written(resolve(overload)):
        yield "first argument", _first_argument
        yield "zeros", _filled(0)
        yield "ones", _filled(1)
        # otherwise, for example for sums, the machine decides the sign of a zero
        signs = signs_zeros(overload) or copies(overload)
        for label, change in (_PAST_A_SIZE | _VALUES).items():
            if signs or label != _UNSIGNED:
                yield label, _changed(change)
    yield "bfloat16 intermediate", _rounded
    for argument in resolve(overload)._schema.arguments:
        if argument.has_default_value() and not argument.is_out:
            yield f"without {argument.name}", _dropped(argument.name, argument.default_value)
        elif str(argument.type) in _USUAL:
            yield f"{argument.name} ignored", _replaced(argument.name, _USUAL[str(argument.type)])


def _first_argument(overload: str, arguments: Arguments) -> Any:
    right = _honest(overload, arguments)
    first = next(v for v in arguments.values() if isinstance(v, torch.Tensor))

    def like(r: torch.Tensor) -> torch.Tensor:
        return first.to(r.dtype).expand_as(r).clone() if first.dim() <= r.dim() else first.clone()

    return _each(right, like)


def _filled(value: int) -> Mutant:
    return lambda overload, arguments: _each(_honest(overload, arguments), lambda r: torch.full_like(r, value))


def _rounded(overload: str, arguments: Arguments) -> Any:
    def rounded(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(rounded(v) for v in value)
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64):
            return value.to(torch.bfloat16).to(value.dtype)
        return value

    targets = written(resolve(overload))
    return _honest(overload, {k: v if k in targets else rounded(v) for k, v in arguments.items()})


def _changed(change: Callable[[torch.Tensor], torch.Tensor]) -> Mutant:
    return lambda overload, arguments: _each(_honest(overload, arguments), lambda r: change(r.clone()))


def _zeroed(r: torch.Tensor, *where: Any) -> torch.Tensor:
    r[where] = 0
    return r


def _zeroed_past(r: torch.Tensor, count: int) -> torch.Tensor:
    flat = r.reshape(-1).clone()
    flat[count:] = 0
    return r.copy_(flat.view(r.shape))


def _of_floats(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda r: r.copy_(change(r)) if r.is_floating_point() else r


_PAST_A_SIZE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros past 1,000 elements": lambda r: _zeroed_past(r, 1000),
    "zeros past 64 lines": lambda r: _zeroed(r, slice(64, None)) if r.dim() else r,
    "zeros past 200 columns": lambda r: _zeroed(r, ..., slice(200, None)) if r.dim() else r,
}
_UNSIGNED = "zeros without a sign"
_VALUES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "NaN is 0": _of_floats(lambda r: r.where(~r.isnan(), torch.zeros_like(r))),
    "infinities are large": _of_floats(lambda r: r.clamp(torch.finfo(r.dtype).min, torch.finfo(r.dtype).max)),
    _UNSIGNED: _of_floats(lambda r: r + 0.0),
    "denormals are 0": _of_floats(lambda r: r.where(r.abs() >= torch.finfo(r.dtype).tiny, r * 0)),
}
_USUAL: dict[str, Any] = {"bool": False, "int": 1, "List[int]": [1]}  # for arguments without a default, by type


def _replaced(name: str, usual: Any) -> Mutant:
    """Return a mutant that replaces the argument by its usual value, and a list by as many of these."""

    def mutant(overload: str, arguments: Arguments) -> Any:
        value = arguments.get(name)
        new = usual * len(value) if isinstance(value, list | tuple) else usual
        return _honest(overload, {**arguments, name: new})

    return mutant


def _dropped(name: str, default: Any) -> Mutant:
    def mutant(overload: str, arguments: Arguments) -> Any:
        if arguments.get(name) is None or arguments[name] == default:
            raise ValueError(f"{name} is not given")
        return _honest(overload, {k: v for k, v in arguments.items() if k != name})

    return mutant


def _each(result: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(result, list | tuple):
        return type(result)(_each(r, change) for r in result)
    return change(result) if isinstance(result, torch.Tensor) else result
