"""Other sizes for a call: each size varied independently, and other numbers of dimensions.

The new sizes are small, odd, large, or just around block boundaries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

from verify.cases.apart import matters_as_much, needed_places
from verify.cases.arguments import MAX_FEW_LINES, MAX_OTHERS, Arguments, tensors
from verify.cases.oracle import idle, stands
from verify.cases.places import Site, choices, places, resized
from verify.cases.variants import like
from verify.operators import elementwise, factors, group, linear

MAX_LINES = 300  # limit if a kernel may use one program per line, each some milliseconds in Triton's interpreter
MANY_LINES = 1027  # tried once per call
LARGE = (1 << 17) + 3  # elements in an elementwise call
# A probability below 2^-17, which 16 random bits round to 0; of all draws that are tested (verify/comparison/draws.py),
# about 36 have the event.
RARE = 7e-6
MAX_RANK = 6
_SHAPE = [2, 3, 2, 1, 3, 2]  # for MAX_RANK dimensions
_SIZES = (0, 1, 2, 7, 16, 17, 31, 64, 65, 131, 257)
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by number of dimensions
_BLOCKS = (128, 1024)  # used if the source contains no block sizes
# Elements along a line; a sum in bfloat16 stops growing at 256, one in float16 at 2,048. A kernel may add in some
# lanes, so sums in float16 take more.
LINE, LINE_IN_FLOAT16 = 4099, 16_387
LONG = 40  # tensors in a list
# A product of two of the source's integers that is tried as a number of elements; a program takes some milliseconds in
# Triton's interpreter.
_MOST_PRODUCTS, _MAX_PRODUCT = 1, 1 << 19
_MOST_LARGE = 6  # sizes above 4,096 that are tried for each dimension
_TRIED = 64  # sets of sites that are tried as one size
_TOGETHER = 5  # sites in one size
_ALONG = 3  # sizes along a program's line are tried this many times as often as others
_OTHERS = 2  # if one size is large, two other sizes are at most this; the rest are 1

Size: TypeAlias = tuple[Site, ...]  # sites that ATen requires to be equal


def edges(numbers: Sequence[int]) -> list[int]:
    """Return these numbers, their first multiples, and the numbers next to them."""
    result = {n * k + d for n in numbers for k in (1, 2, 3) for d in (-1, 0, 1)}
    return sorted(n for n in result if n > 0)


def sizes(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: Sequence[int]
) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with other sizes, trying the edges of the source's numbers first, and with other ranks.

    Args:
        overload: Full name of the overload.
        arguments: The original call.
        generator: Random generator for the order and for new contents.
        blocks: Integers in the kernel's source that may be block sizes.
    """
    known = _sizes_of(overload, arguments)
    each = []
    for size in _drawn(known, generator):
        often = _ALONG if _is_line(size, arguments) and not elementwise(overload) else 1
        each += [_of_one(overload, arguments, size, known, generator, blocks)] * often
    each += [_between(overload, arguments, generator, blocks)]
    flat = itertools.chain(_uniform_sizes(arguments, generator), _flat(overload, arguments, generator, blocks))
    for variants in itertools.zip_longest(flat, _ranks(overload, arguments, generator), *each):
        yield from filter(None, variants)


def _between(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: Sequence[int]
) -> Iterator[tuple[str, Arguments]]:
    """Yield other sizes along an inner dimension, if the call names an outer one."""
    dim, rank = arguments.get("dim"), max((t.dim() for t in tensors(arguments)), default=0)
    if type(dim) is not int or rank < 3 or dim % rank not in (0, rank - 1):
        return
    changed = {**arguments, "dim": rank - 2}
    if not stands(overload, changed):
        return
    known = _sizes_of(overload, changed)
    for size in [s for s in known if _is_line(s, changed)][:1]:
        for how, variant in _of_one(overload, changed, size, known, generator, blocks):
            yield f"dim = {rank - 2}, {how}", variant


def _uniform_sizes(arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with all sizes changed at once: empty, 1, 7 or odd."""
    dims = range(max((t.dim() for t in tensors(arguments)), default=0))
    nothing = [(f"nothing in dimension {dim}", _every(arguments, partial(_none_along, dim=dim))) for dim in dims]
    yield from nothing[:1]
    present = sorted({n for t in tensors(arguments) for n in t.shape if n > 1})
    if present:
        yield "all sizes 1", _mapped(arguments, dict.fromkeys(present, 1).get, generator)
        yield "all sizes 7", _mapped(arguments, dict.fromkeys(present, 7).get, generator)
        yield "all sizes odd", _mapped(arguments, {n: 2 * n + 1 for n in present}.get, generator)
    yield from nothing[1:]


def _none_along(t: torch.Tensor, dim: int) -> torch.Tensor:
    return t.narrow(dim, 0, 0) if t.dim() > dim else t


def _flat(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: Sequence[int]
) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with all elements in one dimension, for kernels that treat tensors as flat."""
    if elementwise(overload) or len(tensors(arguments)) == 1:
        for count in _wanted(blocks or _BLOCKS, edges(blocks or _BLOCKS), generator):
            draw = partial(_drawn_like, generator=generator, shape=[count])
            yield f"{count} elements", _every(arguments, draw)


def lengths(arguments: Arguments, blocks: Sequence[int]) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with longer lists of tensors: past the source's small integers, and LONG."""
    lists = {name: v for name, v in arguments.items() if isinstance(v, list | tuple) and v and _all_tensors(v)}
    if lists:
        for count in (LONG, *sorted({n + 1 for n in blocks if n < LONG - 1}, reverse=True)):
            longer = {name: type(v)(v[i % len(v)] for i in range(count)) for name, v in lists.items()}
            yield f"{count} tensors", {**arguments, **longer}


def _all_tensors(values: Sequence[Any]) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values)


def large(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: Sequence[int] = ()
) -> Iterator[tuple[str, Arguments]]:
    """Yield more elements than 16 bits can count if the work is linear in them, else more lines than usual.

    Products of two integers in the source may be the elements that a grid of a fixed size covers, so the call has
    more of them, too.
    """
    if linear(overload):
        products = sorted({a * b for a, b in itertools.combinations_with_replacement(blocks, 2)})
        beyond = [n + 3 for n in products if LARGE < n <= _MAX_PRODUCT]
        for count in (LARGE, *_drawn(beyond, generator)[:_MOST_PRODUCTS]):
            yield f"{count} elements", _every(arguments, partial(_drawn_like, generator=generator, shape=[count]))
        yield from _rare(overload, arguments, generator)
        return
    if factors(overload):
        return  # a matrix takes a tenth of a second in Triton's interpreter
    known = _sizes_of(overload, arguments)
    of_lines = [
        s for s in known if not _is_line(s, arguments) and any(p.dim == 0 and p.of_tensor(arguments) for p in s)
    ]
    for size in _drawn(of_lines, generator):
        changed = _with(arguments, size, MANY_LINES, known, generator)
        if stands(overload, changed):
            yield f"{_named(size)} -> {MANY_LINES}", changed
            return


def _rare(overload: str, arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    """Yield calls in float32 that draw events which hardly ever, or nearly always, occur."""
    p = arguments.get("p")
    if p is None or elementwise(overload) or {t.dtype for t in tensors(arguments)} != {torch.float32}:
        return
    many = _every(arguments, partial(_drawn_like, generator=generator, shape=[LARGE]))
    for rare in (RARE, 1 - RARE):
        changed = torch.full_like(many["p"], rare) if isinstance(p, torch.Tensor) else rare
        yield f"{LARGE} elements, p = {rare:g}", {**many, "p": changed}


def long_lines(overload: str, arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with many similar numbers along each line, whose sum a half-precision accumulator cannot hold."""
    if elementwise(overload):
        return
    known, half = _sizes_of(overload, arguments), any(t.dtype == torch.float16 for t in tensors(arguments))
    count = LINE_IN_FLOAT16 if half and group(overload) == "accumulate" else LINE
    for size in [s for s in known if _is_line(s, arguments)]:
        changed = _with(arguments, size, count, known, generator)
        similar = _every(changed, partial(_similar, generator=generator))
        yield f"{_named(size)} -> {count}, similar numbers", similar


def _similar(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return numbers from 1/2 to 1 for floats."""
    if not t.is_floating_point():
        return t
    return (torch.rand(t.shape, generator=generator, dtype=torch.float64) / 2 + 0.5).to(t.dtype)


def shrunk(arguments: Arguments) -> Arguments:
    """Return the call with small sizes. Different sizes remain different."""
    present = sorted({n for t in tensors(arguments) for n in t.shape if n > 1})
    return _mapped(arguments, {n: i + 2 for i, n in enumerate(present)}.get, torch.Generator().manual_seed(0))


def _sizes_of(overload: str, arguments: Arguments) -> list[Size]:
    """Return the sizes that ATen allows to differ from each other, each as the tuple of its sites."""
    at, needed = places(arguments), needed_places(overload, arguments)
    groups: list[Size] = []
    for site, size in at.items():
        taken = {p for known in groups for p in known}
        if site in taken or not size:
            continue
        equal_sites = [p for p, n in at.items() if n == size and p != site and p not in taken]
        new = next(n for n in itertools.count(size + 1) if n not in at.values())
        sets = itertools.chain([()], choices(equal_sites, _TOGETHER - 1))
        for chosen in itertools.islice(sets, _TRIED):
            changed = resized(arguments, [site, *chosen], new, torch.Generator().manual_seed(0))
            if idle(overload, changed, needed) == []:
                groups.append((site, *chosen))
                break
    return groups


def _of_one(
    overload: str,
    arguments: Arguments,
    size: Size,
    known: Sequence[Size],
    generator: torch.Generator,
    blocks: Sequence[int],
) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with one size changed.

    Outer sizes stay below MAX_LINES, because a kernel may use one program per line.
    """
    line = elementwise(overload) or _is_line(size, arguments)
    at_edges = [n for n in edges(blocks or _BLOCKS) if line or n <= MAX_LINES]
    for new in _wanted(blocks, at_edges, generator):
        changed = _with(arguments, size, new, known, generator)
        # ATen may read indices that point into an empty dimension before it checks them.
        checked = new or _without_indices(changed) or matters_as_much(overload, changed, arguments)
        if new != size[0].size(arguments) and (checked or _is_inner(size, changed)):
            yield f"{_named(size)} -> {new}", changed


def _without_indices(arguments: Arguments) -> bool:
    return not any(t.dtype in (torch.int32, torch.int64) and t.numel() for t in tensors(arguments))


def _is_inner(size: Size, arguments: Arguments) -> bool:
    """Return True if the size is only the last dimension of floating tensors, so that lines become empty."""
    return all(
        p.of_tensor(arguments) and (t := _tensor(p, arguments)).is_floating_point() and 0 < p.dim == t.dim() - 1
        for p in size
    )


def _wanted(numbers: Sequence[int], at_edges: Sequence[int], generator: torch.Generator) -> list[int]:
    """Return sizes in random order: the numbers and their edges first, then other sizes and few large ones."""
    small, big = [n for n in at_edges if n <= 4096], [n for n in at_edges if n > 4096]
    first = _drawn([n for n in small if n in numbers], generator)
    next_to = _drawn([n for n in small if n not in numbers], generator)
    near = [*first, *next_to]
    rest = itertools.zip_longest(_drawn(big, generator)[:_MOST_LARGE], _drawn(_SIZES, generator))
    drawn = itertools.zip_longest(near[::2], near[1::2], itertools.chain.from_iterable(rest))
    return list(dict.fromkeys(n for group in drawn for n in group if n is not None))


def _is_line(size: Size, arguments: Arguments) -> bool:
    """Return True if a program probably iterates along the size.

    These are the dimensions that the call names, else the last ones.
    """
    dims = arguments.get("dim", arguments.get("dims"))
    dims = [dims] if type(dims) is int else dims if isinstance(dims, list | tuple) else []
    ranks = {p: _tensor(p, arguments).dim() for p in size if p.of_tensor(arguments)}
    named = {(d % rank, rank) for d in dims if type(d) is int for rank in ranks.values() if rank}
    if named:
        return any((p.dim, rank) in named for p, rank in ranks.items())
    return any(p.dim == rank - 1 for p, rank in ranks.items())


def _tensor(site: Site, arguments: Arguments) -> torch.Tensor:
    value = arguments[site.name] if site.item is None else arguments[site.name][site.item]
    assert isinstance(value, torch.Tensor)
    return value


def _named(size: Size) -> str:
    return " and ".join(map(str, size))


def _with(arguments: Arguments, size: Size, new: int, known: Sequence[Size], generator: torch.Generator) -> Arguments:
    """Return the call with one size changed, and the other sizes reduced if it would be too large."""
    changed = resized(arguments, size, new, generator)
    if max((t.numel() for t in tensors(changed)), default=0) <= MAX_OTHERS // 2:
        return changed
    lines = 1
    for other in _drawn([other for other in known if other != size], generator):
        small = min(_OTHERS if lines < MAX_FEW_LINES else 1, other[0].size(arguments))
        lines *= small
        arguments = resized(arguments, other, small, generator)
    return resized(arguments, size, new, generator)


def _drawn(items: Sequence[Any], generator: torch.Generator) -> list[Any]:
    return [items[i] for i in torch.randperm(len(items), generator=generator).tolist()]


# -- numbers of dimensions --------------------------------------------------------------------------------------------


def _ranks(overload: str, arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with other numbers of dimensions.

    Elementwise operators get every rank from 6 to 0. Other operators get one more dimension at a time, in all
    tensors or in the first, at the front or the back, and one dimension less.
    """
    first = next((name for name, value in arguments.items() if isinstance(value, torch.Tensor)), None)
    thin = _every(arguments, lambda t: like(t, [2, 1, 5], generator))
    equal = "two equal strides", _every(thin, _of_equal_strides, first)
    if elementwise(overload):
        of_rank = [
            (f"{rank} dimensions", _every(arguments, partial(_drawn_like, generator=generator, shape=_SHAPE[:rank])))
            for rank in range(MAX_RANK, -1, -1)
        ]
        five = _every(arguments, lambda t: like(t, [2, 3, 2, 3, 2], generator))
        yield from (of_rank[0], equal)
        yield "five dimensions, permuted", _every(five, lambda t: _permuted(t, 4, 2, 3, 0, 1))
        yield from of_rank[1:]
        return
    if len({t.shape for t in tensors(arguments) if t.dim()}) == 1:
        yield equal
    for names, where in itertools.product((None, first), (0, -1)):
        result = arguments
        description = f"a dimension more {'in front' if where == 0 else 'behind'} of {names or 'all tensors'}"
        for more in range(1, MAX_RANK):
            result = _every(result, partial(_repeated, where=where), names)
            if max(t.dim() for t in tensors(result)) > MAX_RANK:
                break
            if names is None or matters_as_much(overload, result, arguments):
                yield f"{description}, {more} times", result
            if names is None and where == 0 and max(t.dim() for t in tensors(result)) in _CHANNELS_LAST:
                yield f"{description}, {more} times, channels last", _every(result, _channels_last)
    yield "a dimension less", _every(arguments, lambda t: t.select(0, 0) if t.dim() and t.shape[0] else t)


def _of_equal_strides(t: torch.Tensor) -> torch.Tensor:
    """Return a [2, 1, 5] tensor with strides (1, 2, 2), which is not contiguous."""
    return _permuted(_permuted(t, 2, 1, 0).contiguous(), 2, 1, 0)


def _permuted(t: torch.Tensor, *order: int) -> torch.Tensor:
    """Permute the dimensions. An empty tensor, which is never redrawn, may have another rank and stays unchanged."""
    return t.permute(order) if t.dim() == len(order) else t


def _channels_last(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous(memory_format=_CHANNELS_LAST[t.dim()]) if t.dim() in _CHANNELS_LAST else t


def _drawn_like(t: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    return like(t, shape, generator)


def _repeated(t: torch.Tensor, where: int) -> torch.Tensor:
    """Stack the tensor along a new dimension with a copy whose elements are in another order."""
    other = t.reshape(-1).flip(0).reshape(t.shape) if t.is_floating_point() else t
    return torch.stack([t, other], dim=where)


# -- all at once ------------------------------------------------------------------------------------------------------


def _every(arguments: Arguments, change: Callable[[torch.Tensor], torch.Tensor], name: str | None = None) -> Arguments:
    """Change every strided tensor with dimensions, including those in lists, or only the argument called `name`."""

    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            return change(value) if value.dim() else value
        if isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
            return type(value)(changed(v) for v in value)
        return value

    return {n: changed(v) if name in (None, n) else v for n, v in arguments.items()}


def _mapped(arguments: Arguments, size: Callable[[int, int], int], generator: torch.Generator) -> Arguments:
    """Return the call with all sizes mapped, in tensors and in lists of sizes.

    Sums over sizes, as in split, may become inconsistent; ATen then refuses the call. `size` is called with the
    old size twice, like a dictionary's `get`, and returns the new size.
    """

    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return like(value, [size(n, n) for n in value.shape], generator)
        if isinstance(value, list | tuple):
            return type(value)(changed(v) for v in value)
        return value

    def of_name(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple) and ("shape" in name or "size" in name):
            return type(value)(size(n, n) if type(n) is int else changed(n) for n in value)
        return changed(value)

    return {name: of_name(name, value) for name, value in arguments.items()}
