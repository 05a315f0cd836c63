"""Offsets: where element i of a tensor lies, and integers that travel to kernels without a variant for each value."""

import math

import torch
import triton
import triton.language as tl

__all__ = [
    "coalesce",
    "empty_result",
    "integer",
    "integer_value",
    "integer_values",
    "integers",
    "plain",
    "plain_value",
    "stride_arguments",
    "stride_values",
    "strided",
    "walk",
]


def plain(value):
    """An integer from 0 on as an argument of a launch, to be read by `plain_value`.

    Triton compiles anew for an integer that is 1 or a multiple of 16; 2 * value + 3 is neither.
    """
    return 2 * value + 3


@triton.jit
def plain_value(value):
    return (value >> 1) - 1


def small_tile(n, elements):
    """BLOCK_M and BLOCK_N, of so many elements together, for rows of n elements of small tensors, whose speed is not
    the tile's: two tiles are fewer variants than one for each size."""
    BLOCK_N = 64 if n <= 64 else 1024
    return max(elements // BLOCK_N, 1), BLOCK_N


def integer(value, PLAIN):
    """An integer as an argument of a launch, to be read by `integer_value`: `plain`, or else as it is.

    Few variants count for more where tensors are small; of large ones vectorised loads have to know what 16 divides.
    """
    return plain(value) if PLAIN else value


def integers(values, PLAIN):
    """Integers as one argument of a launch, to be read by `integer_values`."""
    return tuple([integer(value, PLAIN) for value in values])


@triton.jit
def integer_value(value, PLAIN: tl.constexpr):
    return plain_value(value) if PLAIN else value


@triton.jit
def integer_values(values, PLAIN: tl.constexpr):
    if not PLAIN:
        return values
    found = ()
    for k in tl.static_range(len(values)):
        found = found + (plain_value(values[k]),)
    return found


def stride_arguments(strides, small):
    """Strides as arguments of a launch, to be read by `stride_values`, where one that is 1 is always known to be 1."""
    return tuple([2 * s - 1 for s in strides] if small else strides)


@triton.jit
def stride_values(values, PLAIN: tl.constexpr):
    if not PLAIN:
        return values
    found = ()
    for k in tl.static_range(len(values)):
        found = found + ((values[k] + 1) >> 1,)
    return found


@triton.jit
def sixteenths(value, KNOWN: tl.constexpr):
    """The value, as a multiple of 16 that the compiler sees if it is KNOWN to be one: it vectorises loads by that."""
    return value // 16 * 16 if KNOWN else value


@triton.jit
def strided(i, shape, stride, HINT: tl.constexpr, PLAIN: tl.constexpr = True):
    """Offset, in elements, of row-major flat index i; shape and stride are by `integers`, HINT is `stride_hint`'s.

    HINT: 1 if the innermost stride is 1, and 16 more if all other strides and sizes are multiples of 16. shape is ()
    where there is but one dimension, of stride 1 or, without that hint, 0.
    """
    if len(shape) == 0:
        return i if HINT % 2 == 1 else tl.zeros_like(i)
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        if k > 0:
            size = sixteenths(integer_value(shape[k], PLAIN), HINT >= 16)
            index = i % size
            i = i // size
        else:
            index = i
        if HINT % 2 == 1 and k == len(shape) - 1:
            offset += index
        else:
            offset += index * sixteenths(integer_value(stride[k], PLAIN), HINT >= 16)
    return offset


def stride_hint(shape, stride, large):
    """What a kernel is to know of strides: 1 if the innermost is 1, and 16 more if all others are multiples of 16.

    large: whether it pays that there is a variant of the kernel for that.
    """
    unit = stride[-1] == 1
    others = [*shape[1:], *(stride[:-1] if unit else stride)]
    return unit + 16 * (large and len(shape) > 0 and all([v % 16 == 0 for v in others]))


def coalesce(tensors):
    """(shape, strides of each tensor) in as few dimensions as step through all of these, which are of one shape.

    Dimensions are in the order in which the last tensor lies in memory; those of one element are left out, and
    neighbours that every tensor steps through as one are one. The shape is () where every tensor lies dense in that
    order or is one element.
    """
    if all([t.is_contiguous() for t in tensors]):
        return (), [(1,)] * len(tensors)
    shape = tensors[0].shape
    order = sorted([d for d in range(len(shape)) if shape[d] != 1], key=tensors[-1].stride, reverse=True)
    return merge([shape[d] for d in order], [[t.stride(d) for d in order] for t in tensors])


def merge(shape, strides):
    """The same steps in as few dimensions as can be, without change of order: (shape, strides of each).

    The shape is () where that is one dimension at most, of stride 1 or 0 in each.
    """
    sizes, merged = [], [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all([s[-1] == stride[d] * n for s, stride in zip(merged, strides, strict=True)]):
            sizes[-1] *= n
            merged = [[*s[:-1], stride[d]] for s, stride in zip(merged, strides, strict=True)]
        else:
            sizes.append(n)
            merged = [[*s, stride[d]] for s, stride in zip(merged, strides, strict=True)]
    flat = len(sizes) == 1 and all([s[0] in (0, 1) for s in merged])
    return () if flat or not sizes else tuple(sizes), [tuple(s or [1]) for s in merged]


def walk(tensors, dims, PLAIN):
    """How to step through these dimensions of tensors of one shape: (shape, strides of each), for `strided`.

    That is without UNIT: where integers are not PLAIN, Triton knows of a stride that it is 1.
    """
    shape, strides = merge([tensors[0].shape[d] for d in dims], [[t.stride(d) for d in dims] for t in tensors])
    if not shape:
        shape = (math.prod([tensors[0].shape[d] for d in dims]),)
    return integers(shape, PLAIN), tuple([integers(stride, PLAIN) for stride in strides])


def reach(shape, strides):
    """The largest offset, in elements, among tensors of these strides."""
    return max([sum([(n - 1) * s for n, s in zip(shape, stride, strict=False)]) for stride in strides])


def empty_result(tensors, dtype):
    """A new tensor for the result of these, which are of one shape; its memory is in their order (TensorIterator's)."""
    first = tensors[0]
    if all([t.is_contiguous() for t in tensors]):
        return torch.empty(first.shape, dtype=dtype, device=first.device)
    order = list(range(first.dim()))[::-1]  # fastest dimension first
    for i in range(1, len(order)):
        k = i
        for j in range(i - 1, -1, -1):
            outside = _lies_outside(tensors, order[j], order[k])
            if outside < 0:
                break
            if outside > 0:
                order[j], order[k], k = order[k], order[j], j
    out = torch.empty([first.shape[d] for d in order[::-1]], dtype=dtype, device=first.device)
    return out.permute([order[::-1].index(d) for d in range(first.dim())])


def _lies_outside(tensors, a, b):
    """Positive where dimension a has to lie outside b, negative where inside, 0 where no tensor tells."""
    for t in tensors:
        if t.stride(a) == 0 or t.stride(b) == 0:
            continue
        if t.stride(a) != t.stride(b):
            return t.stride(a) - t.stride(b)
        if t.shape[a] > t.shape[b]:
            return 1
    return 0
