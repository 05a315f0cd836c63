"""The random numbers of one training, taken down and given to another.

The CPU cannot draw what a GPU does: its generator is another, and so are the operators that its models come down to.
What each call of the one training drew is therefore kept, and the n-th call of the other that draws is given it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from traces.facts import tagged
from traces.overloads import base_name, bind, kind, name_of, written
from verify.cases.philox import kept

Around: TypeAlias = Callable[[], AbstractContextManager[Any]]  # makes the context of a step
Drawing: TypeAlias = Callable[[], AbstractContextManager[Around]]  # makes that of a training
_MASKED = tagged("dropped")
_NUMBERS = tagged("drawn")


class Incomparable(Exception):
    """The one training is no reference for the other: why, in a line."""


def shared(around: Around) -> Drawing:
    """Of a device that draws as the CPU does in the same contexts."""
    return lambda: nullcontext(around)


@dataclass(frozen=True)
class _Draw:
    """operator: without the marks of its variants. values: on the CPU, of every result; of dropout the mask alone."""

    operator: str
    values: tuple[Tensor, ...]


@dataclass
class Draws:
    """What a training drew, call by call. unseen: overloads that drew what their results do not show, and how often."""

    taken: list[_Draw] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)

    def recording(self, served: Mapping[str, int]) -> AbstractContextManager[Any]:
        """A context in which calls are taken down. served: how many calls of each overload the library has answered,
        up to now: attention's masks follow from its results where it did."""
        return _Recording(self, served)

    @contextmanager
    def replayed(self) -> Iterator[Around]:
        """For one training on the CPU: makes contexts in which its calls draw these numbers, in their order.

        Raises Incomparable where the two do not draw alike, and at the end if the CPU has drawn less.
        """
        if self.unseen:
            raise Incomparable(f"what {', '.join(sorted(self.unseen))} drew cannot be seen in its results")
        replaying = _Replaying(iter(self.taken))
        yield lambda: replaying
        if left := len(list(replaying.draws)):
            raise Incomparable(f"the CPU draws {len(self.taken) - left} times where the device draws {len(self.taken)}")


class _Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, draws: Draws, served: Mapping[str, int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._draws, self._served = draws, served

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        arguments, name = bind(func, args, kwargs or {}), name_of(func)
        before = self._served.get(name, 0)
        result = func(*args, **(kwargs or {}))
        if _draws(func, arguments):
            draw = _drawn(func, arguments, result, ours=self._served.get(name, 0) > before)
            if draw is None:
                self._draws.unseen[name] += 1
            else:
                self._draws.taken.append(draw)
        return result


class _Replaying(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, draws: Iterator[_Draw]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draws = draws

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        arguments = bind(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if _draws(func, arguments):
            with _disable_current_modes():
                self._overwrite(func, arguments, result)
        return result

    def _overwrite(self, op: OpOverload, arguments: Mapping[str, Any], result: Any) -> None:
        """Put the next numbers in the place of those that the call drew."""
        operator, own = _operator(op), _results(op, arguments, result)
        draw = next(self.draws, None)
        if draw is None:
            raise Incomparable(f"the CPU draws with {operator} once more than the device")
        alike = operator == draw.operator or {operator, draw.operator} <= _MASKED
        targets = own[1:] if operator == "native_dropout" else own
        if not alike or [t.shape for t in targets] != [v.shape for v in draw.values]:
            raise Incomparable(
                f"the CPU draws with {operator} {_sizes(targets)} where the device does with {draw.operator}"
                f" {_sizes(draw.values)}"
            )
        for target, value in zip(targets, draw.values, strict=True):
            target.copy_(value)
        if operator == "native_dropout":
            own[0].copy_(arguments["input"] * draw.values[0] / (1 - arguments["p"]))


def _draws(op: OpOverload, arguments: Mapping[str, Any]) -> bool:
    """Backward overloads drop what forward ones have drawn."""
    if kind(op, arguments) != "random" or base_name(op).endswith("_backward"):
        return False
    return not (base_name(op) == "native_dropout" and (arguments["train"] is False or not 0 < arguments["p"] < 1))


def _operator(op: OpOverload) -> str:
    return base_name(op).removesuffix("_").removesuffix("_like")


def _results(op: OpOverload, arguments: Mapping[str, Any], result: Any) -> list[Tensor]:
    names = written(op)
    return [arguments[name] for name in names] if names else [v for v in tree_leaves(result) if isinstance(v, Tensor)]


def _drawn(op: OpOverload, arguments: Mapping[str, Any], result: Any, ours: bool) -> _Draw | None:
    """What a call drew; None if its results do not show it. ours: the library's kernel has answered it."""
    operator = _operator(op)
    if operator == "native_dropout":
        return _Draw(operator, (result[1].cpu(),))
    if operator in _NUMBERS:
        return _Draw(operator, tuple(t.detach().cpu().clone() for t in _results(op, arguments, result)))
    if "dropout_p" in arguments and ours:
        return _Draw("native_dropout", (_attention_mask(op, arguments, result),))
    return None


def _attention_mask(op: OpOverload, arguments: Mapping[str, Any], result: Any) -> Tensor:
    """Which of the scores, [batch, heads, rows, columns], a fused attention of the library's has kept."""
    query, key = arguments["query"], arguments["key"]
    shape = (*query.shape[:-1], key.shape[-2])
    named = {r.name: value for r, value in zip(op._schema.returns, result, strict=True)}
    state = named["rng_state"] if "rng_state" in named else torch.stack([named["philox_seed"], named["philox_offset"]])
    pair = (int(state.view(torch.int64)[0]), int(state.view(torch.int64)[1]))
    matrices = kept(pair, (shape[0] * shape[1], shape[2], shape[3]), arguments["dropout_p"])
    return torch.from_numpy(matrices).reshape(shape)


def _sizes(tensors: Any) -> str:
    return ", ".join(str(list(t.shape)) for t in tensors)
