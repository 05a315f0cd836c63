"""Cases beyond those recorded: other sizes, layouts and values, made from the cases that there are.

ATen is the oracle of what is valid: a variant that it refuses is left out. Integers keep to the values of the case
that a variant is made from, so that indices, offsets and targets stay valid; what was sorted stays sorted.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from traces.overloads import bind, call, kind, resolve, written
from traces.values import unpack
from verify import syntax
from verify.cases import Case, case_of_values, holds_sparse
from verify.tolerance import elementwise
from verify.variants import Arguments, layouts, numbers, spread, values

MAX_ELEMENTS = 80_000  # of one argument or result of a variant of an operator that works element by element
MAX_OTHERS = 10_000  # of any other operator, unless they are in a few lines
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


def extended(cases: list[Case], seed: int, source: str = "") -> list[Variant]:
    """Variants of some cases of one overload, other than these cases. source: of the kernel, for its block sizes."""
    found: dict[str, Variant] = {}
    given = {case.id for case in cases}
    sources = []
    for template in _templates(cases):
        generator = torch.Generator().manual_seed(seed)
        sources.append(_variants(template.overload, unpack(template.load()), generator, literals(source)))
    for several in itertools.zip_longest(*sources):
        for how, variant in filter(None, several):
            if _valid(cases[0].overload, variant):
                case = case_of_values(cases[0].overload, **variant)
                if case.id not in given:
                    found.setdefault(case.id, Variant(how, replace(case, signature=how)))
    return list(found.values())


def _templates(cases: list[Case]) -> list[Case]:
    """The largest case of each set of argument kinds, then others, all of which have elements."""
    sized: dict[Any, tuple[int, Case]] = {}
    for case in cases:
        packed = case.load()
        if holds_sparse(packed.tree):
            continue  # its parts depend on each other
        size = sum(math.prod(ref.shape) for ref in packed.tensors)
        kinds = (tuple((len(r.shape), r.dtype) for r in packed.tensors), _outline(packed.tree))
        if size > sized.get(kinds, (0, case))[0] and _valid(case.overload, unpack(packed)):
            sized[kinds] = (size, case)
    ranked = sorted(sized.values(), key=lambda pair: -pair[0])
    return [case for _, case in ranked[:TEMPLATES]]


def _outline(tree: Any) -> str:
    return str(sorted(name for name, value in tree.items() if isinstance(value, dict | list)))


def _valid(overload: str, arguments: Arguments) -> bool:
    if not all(_fits(overload, t.shape) for t in _tensors(arguments)):
        return False
    op = resolve(overload)
    try:
        copies = {k: _copied(v) if k in written(op) else v for k, v in arguments.items()}
        versions = [(t, t._version) for t in _tensors(copies)]
        with torch.no_grad():
            result = call(op, bind(op, (), copies))
            packed = None if _is_packed(overload, arguments) else call(op, bind(op, (), _packed(arguments)))
        if any(t._version != version and 0 in t.stride() for t, version in versions):
            return False  # several elements of one address were written, as batch_norm does beside its schema
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return False
    made = _results(result)
    if packed is not None and not all(map(_alike, made, _results(packed))):
        return False  # memory was read and not elements, as by native_layer_norm_backward of mean and rstd with gaps
    return all(_fits(overload, r.shape) for r in made) and not _overflows(overload, _tensors(arguments), made)


def _results(result: Any) -> list[torch.Tensor]:
    return [r for r in (result if isinstance(result, list | tuple) else (result,)) if isinstance(r, torch.Tensor)]


def _is_packed(overload: str, arguments: Arguments) -> bool:
    """Whether there is no other layout to compare with: all are contiguous, it draws, or it is about memory."""
    contiguous = all(t.is_sparse or t.is_contiguous() for t in _tensors(arguments))
    return contiguous or kind(resolve(overload)) == "random" or "storage_offset" in arguments


def _packed(arguments: Arguments) -> Arguments:
    """Contiguous copies of all tensors."""

    def copied(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(copied(v) for v in value)
        dense = isinstance(value, torch.Tensor) and not value.is_sparse
        return value.clone(memory_format=torch.contiguous_format) if dense else value

    return {name: copied(value) for name, value in arguments.items()}


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether floating results are the same but for roundings, which another order of additions makes."""
    if not a.is_floating_point() or not a.numel() or a.is_sparse:
        return True
    if a.shape != b.shape:
        return False
    largest = float(b.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    return torch.allclose(a.double(), b.double(), rtol=2.0**-4, atol=largest * 2.0**-4, equal_nan=True)


def _overflows(overload: str, given: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    """Whether finite numbers came to infinity on the way, which depends on the order in which a kernel takes them."""
    floats = [[t for t in several if t.is_floating_point()] for several in (given, made)]
    return (
        not elementwise(overload)
        and all(bool(t.isfinite().all()) for t in floats[0])
        and any(t.numel() for t in floats[0])
        and any(bool(t.isinf().any()) for t in floats[1])
    )


def _fits(overload: str, shape: Sequence[int]) -> bool:
    """Whether Triton's interpreter gets through a tensor of this shape in seconds."""
    size = math.prod(shape)
    few_lines = size <= 4 * max(shape, default=1)
    return size <= MAX_OTHERS or (size <= MAX_ELEMENTS and (elementwise(overload) or few_lines))


def _copied(value: Any) -> Any:
    return [v.clone() for v in value] if isinstance(value, list | tuple) else value.clone()


def _variants(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: list[int]
) -> Iterator[tuple[str, Arguments]]:
    """Sizes, values and layouts in turn, so that the first few hold something of each; those that tell most first."""
    sizes = _sizes(arguments, generator, blocks, elementwise(overload))
    contents = values(overload, arguments, generator)
    kinds = (sizes, contents, itertools.chain(layouts(arguments), numbers(arguments)), contents)
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
    tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    if each and largest >= 64:
        yield f"{_LARGE} elements", _every(arguments, lambda t: _like(t, [_LARGE], generator))
    if each:
        yield "five dimensions", _every(arguments, lambda t: _like(t, [2, 3, 2, 3, 2], generator).permute(_ORDER))
    if len(tensors) == len(_tensors(arguments)) == 1 and (single := next(iter(tensors))):
        shape = list(tensors[single].shape)
        lines = None if each else _lines(arguments, len(shape))
        for new, dim in itertools.product(wanted, list(reversed(range(len(shape))))[:3]):
            if lines is not None and dim not in lines and new > MAX_LINES:
                continue
            most = MAX_ELEMENTS if each else min(MAX_LINES * new, max(MAX_OTHERS, 4 * new))
            sizes = _with_size(shape, dim, new, most)
            yield f"size of dimension {dim} -> {new}", {**arguments, single: _like(tensors[single], sizes, generator)}
    present = sorted({n for t in _tensors(arguments) for n in t.shape if n > 1})
    for new in wanted if len(_tensors(arguments)) > 1 else []:
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
            return _like(value, [size(n, n) for n in value.shape], generator)
        if isinstance(value, list | tuple):
            return type(value)(resized(v) for v in value)
        return value

    def sizes(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple) and ("shape" in name or "size" in name):
            return type(value)(size(n, n) if type(n) is int else resized(n) for n in value)
        return resized(value)

    return {name: sizes(name, value) for name, value in arguments.items()}


def _like(t: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Contents of another shape: floats drawn alike, all else picked from what is there."""
    if math.prod(shape) > MAX_ELEMENTS:
        return torch.empty(shape, dtype=t.dtype, device="meta")  # refused by ATen beside tensors on the CPU
    if not t.numel() or t.is_sparse:
        return t.new_empty(shape) if not math.prod(shape) else t
    flat = t.reshape(-1)
    if t.is_floating_point() or t.is_complex():
        draw = torch.randn(shape, generator=generator, dtype=torch.float64)
        wide = flat.double() if t.is_floating_point() else flat.real.double()
        finite = wide[wide.isfinite()]
        mean = float(finite.mean()) if finite.numel() else 0.0
        drawn = draw * spread(flat.real if t.is_complex() else flat) + mean
        if finite.numel() and float(finite.min()) >= 0:  # probabilities, variances, weights
            drawn = drawn.abs().clamp(max=float(finite.max())) if float(finite.max()) <= 1 else drawn.abs()
        return drawn.to(t.dtype)
    where = torch.randint(flat.numel(), shape, generator=generator)
    picked = flat[where]
    if t.dim() == 1 and t.dtype is not torch.bool and bool((flat[1:] >= flat[:-1]).all()):
        picked = picked.sort().values
        picked[:1] = flat[:1]  # offsets begin where they began
    return picked


def _tensors(arguments: Arguments) -> list[torch.Tensor]:
    found = []
    for value in arguments.values():
        found += [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor)]
    return found
