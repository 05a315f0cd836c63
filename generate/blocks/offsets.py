"""Element offsets in strided tensors, and integer launch arguments that add no kernel variant per value."""

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


# Number of elements below which the tile does not decide a launch's speed. Such launches take one of few tiles
# (`small_tile`), because fewer kernel variants to compile matter more.
TINY_TENSOR = 4096


def plain(value):
    """Encode an integer from 0 on as a launch argument, to be decoded by `plain_value`.

    Triton compiles anew for an integer that is 1 or divisible by 16; 2 * value + 3 is neither.
    """
    return 2 * value + 3


@triton.jit
def plain_value(value):
    return (value >> 1) - 1


def small_tile(n, elements):
    """Return BLOCK_M and BLOCK_N with this many elements together, for small tensors with rows of n elements.

    The tile does not decide the speed here, so two tiles keep the variants few.
    """
    BLOCK_N = 64 if n <= 64 else 1024
    return max(elements // BLOCK_N, 1), BLOCK_N


def integer(value, PLAIN):
    """Encode an integer as a launch argument for `integer_value`: by `plain` if PLAIN, else unchanged.

    For small tensors fewer variants matter more. For large ones, vectorized loads need to know that 16
    divides a value.
    """
    return plain(value) if PLAIN else value


def integers(values, PLAIN):
    """Encode integers as one launch argument, to be decoded by `integer_values`."""
    return tuple([integer(value, PLAIN) for value in values])


@triton.jit
def integer_value(value, PLAIN: tl.constexpr):
    return plain_value(value) if PLAIN else value


@triton.jit
def integer_values(values, PLAIN: tl.constexpr):
    if not PLAIN:
        return values
    decoded = ()
    for k in tl.static_range(len(values)):
        decoded = decoded + (plain_value(values[k]),)
    return decoded


def stride_arguments(strides, small):
    """Encode strides as launch arguments for `stride_values`, so that Triton always sees a stride that is 1."""
    return tuple([2 * s - 1 for s in strides] if small else strides)


@triton.jit
def stride_values(values, PLAIN: tl.constexpr):
    if not PLAIN:
        return values
    decoded = ()
    for k in tl.static_range(len(values)):
        decoded = decoded + ((values[k] + 1) >> 1,)
    return decoded


@triton.jit
def sixteenths(value, KNOWN: tl.constexpr):
    """Return the value; if it is KNOWN to be divisible by 16, the compiler sees that and vectorizes loads."""
    return value // 16 * 16 if KNOWN else value


@triton.jit
def strided(i, shape, stride, HINT: tl.constexpr, PLAIN: tl.constexpr = True):
    """Return the offset, in elements, for row-major flat index i.

    `shape` and `stride` are encoded by `integers`. HINT comes from `stride_hint`: 1 if the innermost stride
    is 1, plus 16 if all other strides and sizes are divisible by 16. `shape` is () for a single dimension,
    whose stride is 1, or 0 without that hint.
    """
    if len(shape) == 0:
        return i if HINT % 2 == 1 else tl.zeros_like(i)
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        if k > 0:  # the outermost index needs no division, because i is in range
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
    """Return the HINT for `strided`: 1 if the innermost stride is 1, plus 16 if 16 divides all others.

    Set `large` if a further kernel variant pays off.
    """
    unit = stride[-1] == 1
    rest = [*shape[1:], *(stride[:-1] if unit else stride)]
    return unit + 16 * (large and len(shape) > 0 and all([v % 16 == 0 for v in rest]))


def coalesce(tensors):
    """Return (shape, strides per tensor) in as few dimensions as all tensors share; they have one shape.

    Dimensions follow the memory order in the last tensor. Dimensions with one element are dropped, and
    neighbors merge if every tensor steps through them as one. The shape is () if every tensor is dense in
    that order or has one element.
    """
    if all([t.is_contiguous() for t in tensors]):
        return (), [(1,)] * len(tensors)
    shape = tensors[0].shape
    order = sorted([d for d in range(len(shape)) if shape[d] != 1], key=tensors[-1].stride, reverse=True)
    return merge([shape[d] for d in order], [[t.stride(d) for d in order] for t in tensors])


def merge(shape, strides):
    """Merge neighboring dimensions without reordering them; return (shape, strides per tensor).

    The shape is () if at most one dimension remains and its stride is 1 or 0 in each tensor.
    """
    sizes, merged = [], [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        # one step in the outer dimension must equal n steps in this one, in every tensor
        if sizes and all([s[-1] == stride[d] * n for s, stride in zip(merged, strides, strict=True)]):
            sizes[-1] *= n
            merged = [[*s[:-1], stride[d]] for s, stride in zip(merged, strides, strict=True)]
        else:
            sizes.append(n)
            merged = [[*s, stride[d]] for s, stride in zip(merged, strides, strict=True)]
    flat = len(sizes) == 1 and all([s[0] in (0, 1) for s in merged])
    return () if flat or not sizes else tuple(sizes), [tuple(s or [1]) for s in merged]


def walk(tensors, dims, PLAIN):
    """Return (shape, strides per tensor) that `strided` needs to step through these dimensions.

    The tensors have one shape. There is no stride hint: if integers are not PLAIN, Triton itself sees that a
    stride is 1.
    """
    shape, strides = merge([tensors[0].shape[d] for d in dims], [[t.stride(d) for d in dims] for t in tensors])
    if not shape:
        shape = (math.prod([tensors[0].shape[d] for d in dims]),)
    return integers(shape, PLAIN), tuple([integers(stride, PLAIN) for stride in strides])


def reach(shape, strides):
    """Return the largest element offset among tensors with these strides."""
    return max([sum([(n - 1) * s for n, s in zip(shape, stride, strict=False)]) for stride in strides])


def empty_result(tensors, dtype):
    """Return a new tensor for a result, in the memory order that TensorIterator derives from the operands.

    The operands have one shape.
    """
    first = tensors[0]
    if all([t.is_contiguous() for t in tensors]):
        return torch.empty(first.shape, dtype=dtype, device=first.device)
    order = list(range(first.dim()))[::-1]  # fastest dimension first
    # the insertion sort in TensorIterator::reorder_dimensions; it skips undecided pairs, so another sort could differ
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
    """Return a positive value if dimension a lies outside b, negative if inside, and 0 if no tensor decides."""
    for t in tensors:
        if t.stride(a) == 0 or t.stride(b) == 0:
            continue
        if t.stride(a) != t.stride(b):
            return t.stride(a) - t.stride(b)
        if t.shape[a] > t.shape[b]:
            return 1
    return 0
