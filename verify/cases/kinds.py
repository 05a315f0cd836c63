"""Coarse classification of calls, to decide if a verdict on one call also covers another.

Two calls have the same outline if their tensors have the same dtypes and ranks; ranks inside lists do not
count. A call also has traits: a tensor with gaps, broadcast or empty, an argument that is None, two sizes that
differ. A judged kernel covers a call if a case with the same outline passed, and each trait occurred in such a
case. A kernel that passed with different sizes is assumed to be right for equal sizes, but not the other way
round. Tensor contents and the values in integer and float arguments are not traits.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from traces.lazy_bits import lazy_bits

_ELSEWHERE = frozenset({"device", "generator", "layout", "pin_memory"})  # arguments that no kernel sees
_SHOWN = 3  # new traits that a message lists


def kind_of(arguments: Mapping[str, Any]) -> str:
    """Return the kind for a call with these arguments as text; equal outlines and traits give equal texts.

    `arguments` maps schema names to values.
    """
    outline, traits, shapes, lists = [], [], {}, {}
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            outline.append(f"{name} {_outline(value)}")
            traits += [f"{name} {trait}" for trait in _traits(value)]
            shapes[name] = tuple(value.shape)
        elif isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
            tensors = [v for v in value if isinstance(v, torch.Tensor)]
            outline.append(f"{name} {' or '.join(sorted({_dtype(v) for v in tensors}))}")
            traits += [f"{name} {t}" for t in sorted({t for v in tensors for t in (f"of {v.dim()}", *_traits(v))})]
            traits += [f"{name}: several"] * (len(tensors) > 1) + [f"{name}: None"] * (len(tensors) < len(value))
            traits += [f"{name} of several shapes"] * (len({v.shape for v in tensors}) > 1)
            lists[name] = [v.shape for v in tensors]
        elif name not in _ELSEWHERE:
            traits.append(f"{name}={_word(value)}")
    traits += [f"{name} broadcast" for name in _broadcast(shapes)]
    traits += [f"{a} unlike {b}" for (a, x), (b, y) in itertools.combinations(lists.items(), 2) if x != y]
    numbers: dict[int, int] = {}
    sizes = {name: [numbers.setdefault(n, len(numbers)) for n in shape] for name, shape in shapes.items()}
    return json.dumps([", ".join(outline), traits, sizes])


def _outline(t: torch.Tensor) -> str:
    return f"{_dtype(t)} of {t.dim()}"


def _dtype(t: torch.Tensor) -> str:
    return f"{'' if t.layout is torch.strided else 'sparse '}{str(t.dtype).removeprefix('torch.')}"


def _traits(t: torch.Tensor) -> Iterator[str]:
    if not t.numel():
        yield "empty"
    elif t.layout is torch.strided and not t.is_contiguous():
        yield "not contiguous"
    if t.layout is torch.strided:
        yield from sorted(lazy_bits(t))


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"{len(value)} numbers"
    named = value is None or isinstance(value, bool | str | torch.dtype | torch.memory_format)
    return str(value) if named else type(value).__name__


def _broadcast(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the names of tensors with a size of 1 in a dimension in which another tensor is larger.

    Dimensions are aligned at the last one, as in broadcasting.
    """
    most = [max(sizes) for sizes in itertools.zip_longest(*(shape[::-1] for shape in shapes.values()), fillvalue=1)]
    return [n for n, shape in shapes.items() if any(a == 1 < b for a, b in zip(shape[::-1], most, strict=False))]


class Judged:
    """Kinds of calls that a kernel passed."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._traits: defaultdict[str, set[str]] = defaultdict(set)
        for kind in kinds:
            self.add(kind)

    def add(self, kind: str) -> None:
        """Add another call's kind, which passed."""
        outline, traits = _read(kind)
        self._traits[outline].update(traits)

    def news(self, kind: str) -> str:
        """Return a description of everything new in a call with this kind; empty if passed calls cover it."""
        outline, traits = _read(kind)
        if outline not in self._traits:
            return f"no case with {outline or 'no tensor'}"
        new = [trait for trait in traits if trait not in self._traits[outline]]
        more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
        return f"no case with {', '.join(new[:_SHOWN])}{more}" if new else ""


def _read(kind: str) -> tuple[str, list[str]]:
    outline, traits, sizes = json.loads(kind)
    places = [(f"{name}.{i}", size) for name, shape in sizes.items() for i, size in enumerate(shape)]
    unlike = [f"{a} unlike {b}" for (a, n), (b, m) in itertools.combinations(places, 2) if n != m]
    return outline, [*traits, *unlike]
