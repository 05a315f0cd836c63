"""Cases beyond those recorded: other sizes, layouts and values, made from the cases that there are.

ATen is the oracle of what is valid: a variant that it refuses is left out. Integers keep to the values of the case
that a variant is made from, so that indices, offsets and targets stay valid; what was sorted stays sorted.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from traces.contents import NotRecorded
from traces.values import Packed, unpack
from verify import syntax
from verify.cases.apart import apart
from verify.cases.arguments import MAX_ELEMENTS, MAX_OTHERS, Arguments, tensors
from verify.cases.case import Case, case_of_values, holds_sparse, unsupported
from verify.cases.kinds import Judged, kind_of
from verify.cases.oracle import stands
from verify.cases.variants import layouts, like, numbers, values
from verify.operators import elementwise

MAX_LINES = 300  # that a kernel may give a program each, some milliseconds in Triton's interpreter
MAX_LITERAL = 1 << 14  # larger numbers of a source are no block sizes to be tried
TEMPLATES = 2  # cases of an overload that variants are made from
_SIZES = (0, 1, 7, 65, 131)
_LARGE = 70_001  # elements that 16 bits do not count
_ORDER = (4, 2, 3, 0, 1)  # of the dimensions of a tensor that has five
_BLOCKS = (128, 129, 1025)  # where the source names no block sizes


@dataclass(frozen=True)
class Variant:
    """A case and how it was made, such as `size 10 -> 129`, `transposed self`, `values: denormal`."""

    how: str
    case: Case


def literals(source: str) -> list[int]:
    """Integers of a source that may be block sizes, each once."""
    try:
        nodes = ast.walk(syntax.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted({n for n in map(_number, nodes) if n is not None and 2 <= n <= MAX_LITERAL})


def _number(node: ast.AST) -> int | None:
    """The value of an integer, or of a power or product of two, such as 1 << 13 or 4 * 256."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = (n.value if isinstance(n, ast.Constant) else None for n in (node.left, node.right))
    if type(left) is not int or type(right) is not int or not 0 <= right <= MAX_LITERAL or abs(left) > MAX_LITERAL:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    shift = right if isinstance(node.op, ast.LShift) else right * (left == 2) if isinstance(node.op, ast.Pow) else 0
    return (left if isinstance(node.op, ast.LShift) else 1) << shift if 0 < shift < 32 else None


def extended(cases: list[Case], seed: int, source: str = "", most: int | None = None) -> list[Variant]:
    """Variants of some cases of one overload, other than these cases. source: of the kernel, for its block sizes.

    most: how many are wanted; all there are, if None.
    """
    found: dict[str, Variant] = {}
    given = {case.id for case in cases}
    loaded = [packed for packed in map(_loaded, cases) if packed is not None]
    judged, overload = Judged(kind_of(unpack(packed)) for packed in loaded), cases[0].overload
    sources = [
        _variants(overload, template, torch.Generator().manual_seed(seed), judged, literals(source))
        for template in _templates(overload, loaded)
    ]
    for several in itertools.zip_longest(*sources):
        for how, variant in filter(None, several):
            if stands(overload, variant):
                case = case_of_values(overload, **variant)
                if case.id not in given:
                    found.setdefault(case.id, Variant(how, replace(case, signature=how)))
            if len(found) == most:
                return list(found.values())
    return list(found.values())


def _loaded(case: Case) -> Packed | None:
    """Its arguments, if all of them can be had and were recorded."""
    try:
        packed = case.load()
    except NotRecorded:
        return None
    return None if unsupported(packed.tree) else packed


def _templates(overload: str, given: list[Packed]) -> list[Arguments]:
    """The largest call of each set of argument kinds, then others, all of which have elements; a small one like it,
    where all are too large."""
    sized: dict[Any, tuple[int, Arguments]] = {}
    large: dict[Any, Arguments] = {}
    for packed in given:
        if holds_sparse(packed.tree):
            continue  # its parts depend on each other
        size = sum(math.prod(ref.shape) for ref in packed.tensors)
        kinds = (tuple((len(r.shape), r.dtype) for r in packed.tensors), _outline(packed.tree))
        if size > sized.get(kinds, (0,))[0]:
            arguments = unpack(packed)
            if stands(overload, arguments):
                sized[kinds] = (size, arguments)
            else:
                large.setdefault(kinds, arguments)
    ranked = [arguments for _, arguments in sorted(sized.values(), key=lambda pair: -pair[0])]
    for kinds, arguments in large.items():
        if len(ranked) < TEMPLATES and kinds not in sized and stands(overload, small := _shrunk(arguments)):
            ranked.append(small)
    return ranked[:TEMPLATES]


def _shrunk(arguments: Arguments) -> Arguments:
    """The same with small sizes, which differ where they did."""
    sizes = sorted({n for t in tensors(arguments) for n in t.shape if n > 1})
    return _mapped(arguments, {n: i + 2 for i, n in enumerate(sizes)}.get, torch.Generator().manual_seed(0))


def _outline(tree: Any) -> str:
    return str(sorted(name for name, value in tree.items() if isinstance(value, dict | list)))


def _variants(
    overload: str, arguments: Arguments, generator: torch.Generator, judged: Judged, blocks: list[int]
) -> Iterator[tuple[str, Arguments]]:
    """Sizes, values and layouts in turn, so that the first few hold something of each; those that tell most first."""
    sizes = _sizes(arguments, generator, blocks, elementwise(overload))
    unlike = apart(overload, arguments, torch.Generator().manual_seed(generator.initial_seed()), judged)
    contents = values(overload, arguments, generator)
    kinds = (sizes, unlike, contents, unlike, itertools.chain(layouts(arguments), numbers(arguments)), contents)
    for several in itertools.zip_longest(*kinds):
        yield from (variant for variant in several if variant is not None)


# -- sizes ------------------------------------------------------------------------------------------------------------


def _sizes(
    arguments: Arguments, generator: torch.Generator, blocks: list[int], each: bool
) -> Iterator[tuple[str, Arguments]]:
    """Sizes at and past the edges of blocks, the largest first: for a tensor by itself dimension by dimension, for
    several wherever the same size stands. each: the operator works element by element."""
    largest = blocks[-1] if blocks else 0
    edges = {largest - 1, largest, largest + 1, 2 * largest + 1} if blocks else set(_BLOCKS)
    wanted = sorted({*_SIZES, *edges}, reverse=True)
    named = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    if each and largest >= 64:
        yield f"{_LARGE} elements", _every(arguments, lambda t: like(t, [_LARGE], generator))
    if each:
        yield "five dimensions", _every(arguments, lambda t: like(t, [2, 3, 2, 3, 2], generator).permute(_ORDER))
    if len(named) == len(tensors(arguments)) == 1 and (single := next(iter(named))):
        shape = list(named[single].shape)
        lines = None if each else _lines(arguments, len(shape))
        for new, dim in itertools.product(wanted, list(reversed(range(len(shape))))[:3]):
            if lines is not None and dim not in lines and new > MAX_LINES:
                continue
            most = MAX_ELEMENTS if each else min(MAX_LINES * new, max(MAX_OTHERS, 4 * new))
            sizes = _with_size(shape, dim, new, most)
            yield f"size of dimension {dim} -> {new}", {**arguments, single: like(named[single], sizes, generator)}
    present = sorted({n for t in tensors(arguments) for n in t.shape if n > 1})
    for new in wanted if len(tensors(arguments)) > 1 else []:
        for old in present[-2:]:
            if new != old:
                yield f"size {old} -> {new}", _mapped(arguments, {old: new}.get, generator)
    if present:
        yield "all sizes 1", _mapped(arguments, dict.fromkeys(present, 1).get, generator)
        yield "all sizes 7", _mapped(arguments, dict.fromkeys(present, 7).get, generator)
        yield "all sizes odd", _mapped(arguments, {n: 2 * n + 1 for n in present}.get, generator)


def _every(arguments: Arguments, change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """Every tensor that has dimensions changed."""
    return {n: change(v) if isinstance(v, torch.Tensor) and v.dim() else v for n, v in arguments.items()}


def _lines(arguments: Arguments, rank: int) -> set[int] | None:
    """The dimensions along which the arguments say that an operator works; None if they say nothing."""
    dims = arguments.get("dim", arguments.get("dims"))
    dims = [dims] if type(dims) is int else dims
    return {d % rank for d in dims if type(d) is int} if dims and rank else None


def _with_size(shape: list[int], dim: int, new: int, most: int) -> list[int]:
    """The shape with another size of one dimension, and the others made smaller if it would have too many elements."""
    sizes, left = list(shape), most // max(new, 1)
    for d, n in enumerate(shape):
        if d != dim:
            sizes[d] = min(n, max(left, 1))
            left //= max(sizes[d], 1)
    sizes[dim] = new
    return sizes


def _mapped(arguments: Arguments, size: Callable[[int, int], int], generator: torch.Generator) -> Arguments:
    """All sizes mapped, in tensors and in lists of sizes; sums of sizes (as in split) are ATen's to refuse.

    size: a new size, from the old one twice, as a dictionary's `get` gives it.
    """

    def resized(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return like(value, [size(n, n) for n in value.shape], generator)
        if isinstance(value, list | tuple):
            return type(value)(resized(v) for v in value)
        return value

    def sizes(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple) and ("shape" in name or "size" in name):
            return type(value)(size(n, n) if type(n) is int else resized(n) for n in value)
        return resized(value)

    return {name: sizes(name, value) for name, value in arguments.items()}
