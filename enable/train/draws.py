"""Record the random numbers of one training run and replay them in another.

The CPU cannot draw a GPU's random numbers: its generator differs, and its models decompose into other operators. So
each drawing call's numbers are recorded in the first training. In the second, the n-th drawing call receives the n-th
record.
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

Around: TypeAlias = Callable[[], AbstractContextManager[Any]]  # returns the context for one step
Drawing: TypeAlias = Callable[[], AbstractContextManager[Around]]  # returns the context for one training run
_MASKED = tagged("dropped")
_NUMBERS = tagged("drawn")


class Incomparable(Exception):
    """Raised if one training cannot serve as a reference for the other; the message is one line."""


def shared(around: Around) -> Drawing:
    """Return the `Drawing` for a device that draws the same numbers as the CPU in the same contexts."""
    return lambda: nullcontext(around)


@dataclass(frozen=True)
class _Draw:
    """The random numbers of one call.

    Attributes:
        operator: Operator name without the marks of in-place and `_like` variants.
        values: The results on the CPU; for dropout only the mask.
    """

    operator: str
    values: tuple[Tensor, ...]


@dataclass
class Draws:
    """The random numbers of a training run, call by call.

    Attributes:
        taken: One record per drawing call, in order.
        unseen: Number of calls, by overload, whose results do not reveal the numbers that they drew.
    """

    taken: list[_Draw] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)

    def recording(self, served: Mapping[str, int]) -> AbstractContextManager[Any]:
        """Return a context that records calls.

        `served` counts the calls of each overload that the library has answered so far. If it answered an attention
        call, the dropout mask follows from the call's results.
        """
        return _Recording(self, served)

    @contextmanager
    def replayed(self) -> Iterator[Around]:
        """Yield a function that makes contexts for one training on the CPU, whose calls draw these numbers in order.

        Raises:
            Incomparable: The two runs draw differently, or the CPU has drawn less at the end.
        """
        if self.unseen:
            raise Incomparable(f"what {', '.join(sorted(self.unseen))} drew cannot be seen in its results")
        replaying = _Replaying(iter(self.taken))
        yield lambda: replaying
        if left := len(list(replaying.draws)):
            raise Incomparable(f"the CPU draws {len(self.taken) - left} times, the device {len(self.taken)}")


class _Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the numbers that each call draws."""

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
    """Overwrites the numbers that each call draws with recorded ones."""

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
        """Replace the numbers that the call drew by the next recorded ones."""
        operator, results = _operator(op), _results(op, arguments, result)
        draw = next(self.draws, None)
        if draw is None:
            raise Incomparable(f"the CPU draws with {operator} once more than the device")
        is_same_kind = operator == draw.operator or {operator, draw.operator} <= _MASKED
        targets = results[1:] if operator == "native_dropout" else results
        if not is_same_kind or [t.shape for t in targets] != [v.shape for v in draw.values]:
            raise Incomparable(
                f"the CPU draws with {operator} {_sizes(targets)} where the device does with {draw.operator}"
                f" {_sizes(draw.values)}"
            )
        for target, value in zip(targets, draw.values, strict=True):
            target.copy_(value)
        if operator == "native_dropout":
            results[0].copy_(arguments["input"] * draw.values[0] / (1 - arguments["p"]))


def _draws(op: OpOverload, arguments: Mapping[str, Any]) -> bool:
    """Return True if the call draws random numbers; a backward overload reuses the forward's mask."""
    if kind(op, arguments) != "random" or base_name(op).endswith("_backward"):
        return False
    return not (base_name(op) == "native_dropout" and (arguments["train"] is False or not 0 < arguments["p"] < 1))


def _operator(op: OpOverload) -> str:
    """Return the operator's name without the marks of in-place and `_like` variants."""
    return base_name(op).removesuffix("_").removesuffix("_like")


def _results(op: OpOverload, arguments: Mapping[str, Any], result: Any) -> list[Tensor]:
    """Return the tensors that the call wrote, or else its result tensors."""
    names = written(op)
    return [arguments[name] for name in names] if names else [v for v in tree_leaves(result) if isinstance(v, Tensor)]


def _drawn(op: OpOverload, arguments: Mapping[str, Any], result: Any, ours: bool) -> _Draw | None:
    """Return the numbers that a call drew, or None if its results do not reveal them.

    `ours` is True if the library's kernel answered the call.
    """
    operator = _operator(op)
    if operator == "native_dropout":
        return _Draw(operator, (result[1].cpu(),))
    if operator in _NUMBERS:
        return _Draw(operator, tuple(t.detach().cpu().clone() for t in _results(op, arguments, result)))
    if "dropout_p" in arguments and ours:
        return _Draw("native_dropout", (_attention_mask(op, arguments, result),))
    return None


def _attention_mask(op: OpOverload, arguments: Mapping[str, Any], result: Any) -> Tensor:
    """Return the dropout mask [batch, heads, rows, columns] of a fused attention kernel in the library.

    The mask is recomputed from the Philox key and counter among the results.
    """
    query, key = arguments["query"], arguments["key"]
    shape = (*query.shape[:-1], key.shape[-2])
    named = {r.name: value for r, value in zip(op._schema.returns, result, strict=True)}
    state = named["rng_state"] if "rng_state" in named else torch.stack([named["philox_seed"], named["philox_offset"]])
    pair = (int(state.view(torch.int64)[0]), int(state.view(torch.int64)[1]))
    matrices = kept(pair, (shape[0] * shape[1], shape[2], shape[3]), arguments["dropout_p"])
    return torch.from_numpy(matrices).reshape(shape)


def _sizes(tensors: Any) -> str:
    """Return the shapes as text."""
    return ", ".join(str(list(t.shape)) for t in tensors)
