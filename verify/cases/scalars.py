"""Other values for a call's non-tensor arguments: numbers, flags, dimensions, lists, words.

ATen decides which values are valid. If an integer counts something, such as `groups`, the sizes that depend on
it change with it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from traces.overloads import resolve
from verify.cases.arguments import Arguments
from verify.cases.places import Site, choices, places, resized
from verify.operators import adds_up

_ELSEWHERE = frozenset({"device", "generator", "layout", "pin_memory", "non_blocking"})  # arguments that no kernel sees
_INTEGERS = (0, 1, -1, 2, 3, 5, -2, 17)
_FLOATS = (0.0, 1.0, -1.0, 1.5, 0.25, -0.75, 3.0)
_EPSILONS = (0.0, 1e-3, 0.1, 1.0)  # values added before a division or a root
_DTYPES = (
    torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.float32, torch.bool, torch.uint8,
)  # fmt: skip
# Words, or numbers that encode words, by argument name. PyTorch's schemas do not list them.
_WORDS: dict[str, tuple[str | int | None, ...]] = {
    "approximate": ("none", "tanh"),
    "indexing": ("ij", "xy"),
    "interpolation_mode": (0, 1, 2),
    "normalization": (0, 1, 2),
    "padding_mode": ("zeros", "border", "reflection", 0, 1, 2),
    "reduction": (0, 1, 2),
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "rounding_mode": (None, "floor", "trunc"),
    "side": ("left", "right"),
}
_MOST_SCALED = 3  # sizes that change together with an integer


def scalars(overload: str, arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with one such argument changed, taking turns between arguments, then with two changed."""
    types = {a.name: str(a.real_type) for a in resolve(overload)._schema.arguments}
    new_values = {
        name: _other_values(name, value, types.get(name, ""), arguments)
        for name, value in arguments.items()
        if name not in _ELSEWHERE
    }
    if adds_up(overload):  # an infinite factor turns a sum into infinity, and its terms into NaN
        new_values = {name: [v for v in new if not _is_infinite(v)] for name, new in new_values.items()}
    tried = {name: [(f"{name} = {_shown(v)}", {name: v}) for v in new] for name, new in new_values.items()}
    tried = {name: _drawn(changes, generator) for name, changes in tried.items() if changes}
    counted = (
        _along(n, v, arguments, generator) for n, v in arguments.items() if type(v) is int and n not in (*_WORDS, "dim")
    )
    for turn in itertools.zip_longest(*tried.values(), itertools.chain.from_iterable(counted)):
        yield from ((how, {**arguments, **change}) for how, change in filter(None, turn))
    for a, b in itertools.combinations(tried.values(), 2):
        for (how, change), (also, other) in zip(a, _drawn(b, generator), strict=False):
            yield f"{how}, {also}", {**arguments, **change, **other}


def _drawn(changes: Sequence[Any], generator: torch.Generator) -> list[Any]:
    return [changes[i] for i in torch.randperm(len(changes), generator=generator).tolist()]


def _is_infinite(value: Any) -> bool:
    return type(value) is float and math.isinf(value)


def _shown(value: Any) -> str:
    return "a tensor" if isinstance(value, torch.Tensor) else str(value)


def _other_values(name: str, value: Any, kind: str, arguments: Arguments) -> list[Any]:
    """Return values to try instead of this one. `kind` is the argument's type in the schema."""
    new: list[Any] = []
    if type(value) is bool:
        new = [not value]
    elif "ScalarType" in kind:
        new = [None, *_DTYPES] if "Optional" in kind else list(_DTYPES)
    elif "MemoryFormat" in kind:
        new = [None, torch.contiguous_format, torch.preserve_format, torch.channels_last]
    elif name in _WORDS:
        new = list(_WORDS[name])
    elif isinstance(value, torch.Tensor) or isinstance(value, list | tuple) and _holds_tensors(value):
        new = [None] if "Optional" in kind and isinstance(value, torch.Tensor) else []
    elif isinstance(value, list | tuple) or "List[int]" in kind or "List[SymInt]" in kind:
        new = [*_lists(name, list(value or ()), arguments)]
        new += [None] if "Optional" in kind else []
    elif type(value) is int or (value is None and "int" in kind.lower()):
        new = [*_dims(arguments)] if name.startswith("dim") else [*_INTEGERS, *_near(value or 0)]
        if name.startswith("num_"):  # a count that indices refer to, which ATen does not check
            new = [n for n in new if n > (value or 0)]
        new += [0.5, -1.25, 2.0, math.inf, -math.inf] if "number" in kind or "Scalar" in kind else []
        new += [None] if "Optional" in kind else []
    elif type(value) is float or (value is None and ("number" in kind or "float" in kind)):
        new = [*_EPSILONS] if "eps" in name else [*_FLOATS, *([value * 2.5, value * 0.5, -value] if value else [])]
        new += [2, -3, math.inf, -math.inf] if "number" in kind or "Scalar" in kind else []
        new += [None] if "Optional" in kind else []
    return [v for i, v in enumerate(new) if not _same(v, value) and not any(_same(v, w) for w in new[:i])]


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and not isinstance(a, torch.Tensor) and bool(a == b))


def _holds_tensors(value: Sequence[Any]) -> bool:
    return any(isinstance(v, torch.Tensor) for v in value)


def _near(value: int) -> tuple[int, ...]:
    return value + 1, value - 1, 2 * value


def _dims(arguments: Arguments) -> range:
    """Return every dimension of the first tensor, counted from either end."""
    tensor = next((v for v in arguments.values() if isinstance(v, torch.Tensor)), None)
    rank = max(tensor.dim(), 1) if tensor is not None else 1
    return range(-rank, rank)


def _lists(name: str, value: list[Any], arguments: Arguments) -> list[list[int]]:
    """Return lists to try: for dimensions, none, each, pairs and all; for others, one item changed, and all equal."""
    if any(type(v) is not int for v in value):
        return []
    if name.startswith("dim"):
        dims = list(_dims(arguments))
        last = [d for d in dims if d >= 0]
        return [[], *([d] for d in dims), *map(list, itertools.permutations(last, 2)), last, last[::-1]]
    equal = [[n] * len(value) for n in (0, 1, 2, 3) if value]
    items = [[*value[:i], new, *value[i + 1 :]] for i, n in enumerate(value) for new in (*_near(n), 0, 1)]
    return [*equal, *items]


def _along(name: str, value: int, arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with a larger or smaller count, and scale the sizes that the old count divides."""
    if value < 1:
        return
    sizes = [site for site, size in places(arguments).items() if size and size % value == 0]
    subsets = list(choices(sizes, _MOST_SCALED))
    for new in (value + 1, value + 2, *([value - 1] if value > 1 else [])):
        for chosen in _drawn(subsets, generator):
            yield (
                f"{name} = {new} with {' and '.join(map(str, chosen))}",
                {
                    **_scaled(arguments, chosen, value, new, generator),
                    name: new,
                },
            )


def _scaled(arguments: Arguments, chosen: Sequence[Site], old: int, new: int, generator: torch.Generator) -> Arguments:
    for site in chosen:
        arguments = resized(arguments, [site], site.size(arguments) // old * new, generator)
    return arguments
