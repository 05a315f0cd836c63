"""Cases beyond the recorded ones: other sizes, layouts and values, derived from existing cases.

ATen decides which variants are valid: a variant that it refuses is dropped. New integer tensors draw from the
values in the original case, so indices, offsets and targets stay valid. Sorted integers stay sorted, and the
other documented preconditions are kept too (verify/cases/preconditions.py).
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from traces.contents import NotRecorded
from traces.values import Packed, unpack
from verify import syntax
from verify.cases.apart import apart
from verify.cases.arguments import Arguments, tensors
from verify.cases.case import Case, case_of_values
from verify.cases.kinds import Judged, kind_of
from verify.cases.layouts import in_one_memory, layouts, of_vectors
from verify.cases.oracle import stands
from verify.cases.packed import holds_sparse, unsupported
from verify.cases.preconditions import broken, keeping
from verify.cases.scalars import scalars
from verify.cases.sizes import large, lengths, long_lines, shrunk, sizes
from verify.cases.variants import special_numbers, values

T = TypeVar("T")

MAX_LITERAL = 1 << 15  # larger literals in a source are not tried as block sizes
TEMPLATES = 2  # cases per overload from which variants are made
FEW = 12  # variants from one template for each further dtype, two of each kind, before any have two changes
SINGLY = 128  # variants with one change, before some with two changes follow
# Dtypes of the first and of the other tensors in a call with two.
PAIRS = (
    (torch.float32, torch.float16),
    (torch.int32, torch.float32),
    (torch.float16, torch.bfloat16),
    (torch.int32, torch.int64),
)
BASES = 12  # calls with one change that receive a second change


@dataclass(frozen=True)
class Numbers:
    """Numbers in a kernel's source: integers that may be block sizes, and floats that may be special cases."""

    blocks: list[int]
    constants: list[float]


@dataclass(frozen=True)
class Variant:
    """A generated case, and a description such as `size 10 -> 129`, `transposed self`, `values: denormal`."""

    how: str
    case: Case


def literals(source: str) -> list[int]:
    """Return the distinct integers in a source that may be block sizes, sorted."""
    try:
        nodes = ast.walk(syntax.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted({n for n in map(_number, nodes) if n is not None and 2 <= n <= MAX_LITERAL})


def constants(source: str) -> list[float]:
    """Return the distinct floating numbers in a source and its blocks, sorted, with their negatives."""
    try:
        nodes = ast.walk(syntax.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    numbers = {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is float and n.value}
    return sorted({signed for n in numbers if math.isfinite(n) for signed in (n, -n)})


def _number(node: ast.AST) -> int | None:
    """Return the value of an integer literal, a power of two or a product, such as 1 << 13 or 4 * 256."""
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
    """Return the first variants of one overload's cases; see `stream`.

    Args:
        cases: Existing cases; all have the same overload.
        seed: Seed for the random choices.
        source: The kernel's source, which is searched for block sizes.
        most: Maximum number of variants. If None, return all variants with one change and none with two.
    """
    return list(itertools.islice(stream(cases, seed, source, twice=bool(most)), most))


def stream(cases: list[Case], seed: int, source: str = "", twice: bool = True) -> Iterator[Variant]:
    """Yield variants of one overload's cases, without the given cases themselves, and each only once.

    Args:
        cases: Existing cases; all have the same overload.
        seed: Seed for the random choices.
        source: The kernel's source, which is searched for block sizes.
        twice: Yield variants with two changes, too.
    """
    known = {case.id for case in cases}
    first = len(known)
    loaded = [packed for packed in map(_loaded, cases) if packed is not None]
    judged, overload = Judged(kind_of(unpack(packed)) for packed in loaded), cases[0].overload
    ranked, numbers = _templates(overload, loaded), Numbers(literals(source), constants(source))
    by_dtypes = {_dtypes(template): template for template in reversed(ranked[TEMPLATES:])}
    by_dtypes = {dtypes: t for dtypes, t in by_dtypes.items() if dtypes not in map(_dtypes, ranked[:TEMPLATES])}
    usual, rest = (
        [_variants(overload, t, torch.Generator().manual_seed(seed + i), judged, numbers) for i, t in enumerate(group)]
        for group in (ranked[:TEMPLATES], by_dtypes.values())
    )
    rank_variants = [_standing(overload, of_vectors(t)) for t in _of_other_ranks(ranked)]
    sources = [*usual, *(itertools.islice(variants, FEW) for variants in rest), _in_turn(*rank_variants)]
    # A call with numbers alone already has pairs of changes among its variants.
    with_tensors = [t for t in ranked[:TEMPLATES] if tensors(t)]
    base = max(with_tensors, key=lambda t: sum(x.dim() for x in tensors(t)), default=None)
    pairs = iter(()) if base is None else _twice(overload, base, torch.Generator().manual_seed(seed), numbers.blocks)
    more = _in_turn(pairs, *rest) if twice else iter(())
    for how, variant in _then(_in_turn(*sources), more, lambda: len(known) - first >= SINGLY):
        case = case_of_values(overload, **variant)
        if case.id not in known:
            known.add(case.id)
            yield Variant(how, replace(case, signature=how))


def mixed(cases: list[Case]) -> list[Variant]:
    """Return calls with tensors of two dtypes, which ATen promotes."""
    result: dict[str, Variant] = {}
    for arguments in templates(cases)[:TEMPLATES]:
        names = [name for name, value in arguments.items() if isinstance(value, torch.Tensor) and value.dim()]
        same_dtype = [name for name in names if arguments[name].dtype is arguments[names[0]].dtype]
        for first, second in PAIRS if len(same_dtype) > 1 else ():
            changed = {name: arguments[name].to(first if name == same_dtype[0] else second) for name in same_dtype}
            how = f"{first} and {second}".replace("torch.", "")
            for _, variant in _standing(cases[0].overload, [(how, {**arguments, **changed})]):
                case = case_of_values(cases[0].overload, **variant)
                result.setdefault(case.id, Variant(how, replace(case, signature=how)))
    return list(result.values())


def _of_other_ranks(ranked: list[Arguments]) -> list[Arguments]:
    """Return the largest call for each combination of ranks and absent tensors that the first templates lack."""
    by_ranks: dict[Any, Arguments] = {}
    for arguments in ranked:
        by_ranks.setdefault(
            str([v.dim() if isinstance(v, torch.Tensor) else v is None for v in arguments.values()]), arguments
        )
    return [a for a in by_ranks.values() if not any(a is first for first in ranked[:TEMPLATES])]


def _then(first: Iterator[T], second: Iterator[T], both: Callable[[], bool]) -> Iterator[T]:
    """Yield from `first` alone until `both()` is true, then alternate with `second`, then yield the rest of it."""
    for each in first:
        yield each
        if both():
            yield from itertools.islice(second, 1)
    yield from second


def _twice(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: list[int]
) -> Iterator[tuple[str, Arguments]]:
    """Yield calls with two changes: first a number or the layout, then sizes or layouts."""
    numbers = _standing(overload, scalars(overload, arguments, generator))
    placed = _standing(overload, layouts(overload, arguments))
    bases = itertools.islice(_in_turn(numbers, placed), BASES)
    changed = [
        zip(
            itertools.repeat(how),
            _in_turn(
                sizes(overload, base, generator, blocks),
                layouts(overload, base),
                apart(overload, base, generator, Judged([])),
            ),
            strict=False,
        )
        for how, base in bases
    ]
    both = ((f"{how}, {also}", variant) for how, (also, variant) in _in_turn(*changed))
    yield from _standing(overload, both)


def _standing(overload: str, made: Iterable[tuple[str, Arguments]]) -> Iterator[tuple[str, Arguments]]:
    """Yield the variants that ATen answers, after adapting them to the documented preconditions."""
    for how, arguments in made:
        variant = keeping(overload, arguments)
        if broken(overload, variant) is None and stands(overload, variant):
            yield how, variant


def _dtypes(arguments: Arguments) -> tuple[torch.dtype, ...]:
    return tuple(t.dtype for t in tensors(arguments))


def _loaded(case: Case) -> Packed | None:
    """Return the arguments if all are available and were recorded, else None."""
    try:
        packed = case.load()
    except NotRecorded:
        return None
    return None if unsupported(packed.tree) else packed


def templates(cases: list[Case]) -> list[Arguments]:
    """Return the calls from which variants are made, the most important first."""
    return _templates(cases[0].overload, [packed for packed in map(_loaded, cases) if packed is not None])


def _templates(overload: str, packed_calls: list[Packed]) -> list[Arguments]:
    """Return the largest call for each set of argument kinds.

    Each template has elements, or no tensors at all. If all calls in a set are too large, a small one with the
    same structure replaces them. The largest call comes first, then the largest for each other rank, because a
    vector offers too little to vary.
    """
    sized: dict[Any, tuple[int, Arguments]] = {}
    large: dict[Any, Arguments] = {}
    for packed in packed_calls:
        if holds_sparse(packed.tree):
            continue  # the parts of a sparse tensor depend on each other
        size = sum(math.prod(ref.shape) for ref in packed.tensors) if packed.tensors else 1
        kinds = (tuple((len(r.shape), r.dtype) for r in packed.tensors), _outline(packed.tree))
        if size > sized.get(kinds, (0,))[0]:
            arguments = unpack(packed)
            if stands(overload, arguments):
                sized[kinds] = (size, arguments)
            else:
                large.setdefault(kinds, arguments)
    ranked = [arguments for _, arguments in sorted(sized.values(), key=lambda pair: -pair[0])]
    for kinds, arguments in large.items():
        if len(ranked) < TEMPLATES and kinds not in sized and stands(overload, small := shrunk(arguments)):
            ranked.append(small)
    of_rank = {tuple(t.dim() for t in tensors(arguments)): i for i, arguments in reversed([*enumerate(ranked)])}
    return [ranked[i] for i in dict.fromkeys([*sorted(of_rank.values()), *range(len(ranked))])]


def _outline(tree: Any) -> str:
    return str(sorted(name for name, value in tree.items() if isinstance(value, dict | list)))


def _variants(
    overload: str, arguments: Arguments, generator: torch.Generator, judged: Judged, source_numbers: Numbers
) -> Iterator[tuple[str, Arguments]]:
    """Yield variants in sizes, values, numbers and layouts in turn, the most telling ones first.

    Taking turns ensures that the first few variants contain each kind of change.
    """
    numbers = scalars(overload, arguments, generator)
    if not tensors(arguments):
        yield from _standing(overload, itertools.chain(numbers, special_numbers(overload, arguments)))
        return
    unlike = apart(overload, arguments, torch.Generator().manual_seed(generator.initial_seed()), judged)
    contents = values(overload, arguments, generator, source_numbers.constants)
    numbers_and_layouts = itertools.chain(
        special_numbers(overload, arguments), in_one_memory(overload, arguments), layouts(overload, arguments)
    )
    new_sizes = itertools.chain(
        lengths(arguments, source_numbers.blocks), sizes(overload, arguments, generator, source_numbers.blocks)
    )
    kinds = (
        itertools.chain(
            long_lines(overload, arguments, generator), large(overload, arguments, generator, source_numbers.blocks)
        ),
        new_sizes,
        contents,
        numbers,
        unlike,
        numbers_and_layouts,
    )
    yield from _in_turn(*(_standing(overload, kind) for kind in kinds))


def _in_turn(*streams: Iterable[T]) -> Iterator[T]:
    """Yield one item from each stream in turn until all streams end."""
    for items in itertools.zip_longest(*streams):
        yield from (each for each in items if each is not None)
