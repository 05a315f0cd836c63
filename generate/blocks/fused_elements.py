"""Several operators in one launch, element by element: a function of raw values makes all that is to be stored.

What computes in which type is the function's own affair, since operands may be of any types.
"""

import triton
import triton.language as tl
from blocks.offsets import coalesce, empty_result, plain, plain_value, reach, stride_hint, strided
from blocks.types import convert

__all__ = ["broadcast_shape", "expect_shapes", "fused_elements", "lying", "viewed_shape"]


def expect_shapes(tensors, expected):
    """Raises RuntimeError where tensors have not the shapes that what is composed is for: of each dimension 1, or None
    for any other size."""
    for t, shape in zip(tensors, expected, strict=True):
        if tuple([1 if n == 1 else None for n in t.shape]) != shape:
            raise RuntimeError(f"a tensor of shape {tuple(t.shape)}, composed for {shape}, where None is not 1")


def broadcast_shape(*shapes):
    """The shape to which these are broadcast. Raises RuntimeError where they cannot be."""
    shapes = [tuple(shape) for shape in shapes]
    if all([shape == shapes[0] for shape in shapes]):
        return shapes[0]
    found = []
    for k in range(max([len(shape) for shape in shapes])):
        sizes = {shape[-1 - k] for shape in shapes if k < len(shape)} - {1}
        if len(sizes) > 1:
            raise RuntimeError(f"shapes {shapes} cannot be broadcast")
        found.append(sizes.pop() if sizes else 1)
    return tuple(found[::-1])


def viewed_shape(shape, size):
    """The shape of a view of this size, in which one number may be -1, of a tensor of such a shape."""
    count, known = 1, 1
    for n in shape:
        count *= n
    for n in size:
        known *= 1 if n == -1 else n
    found = tuple([count // max(known, 1) if n == -1 else n for n in size])
    if -1 not in size and known != count:
        raise RuntimeError(f"no view of {tuple(shape)} as {tuple(size)}")
    return found


def lying(shape, dtype, tensors):
    """A new tensor of this shape and dtype; its memory is in the order of the tensors, which are broadcast to it."""
    return empty_result([t.expand(shape) for t in tensors], dtype)


@triton.jit
def fused_elements_kernel(
    inputs,
    outs,
    n,
    shape,
    strides,
    FUNCTION: tl.constexpr,
    HINTS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Elements program_id(0) * BLOCK and on. strides: of each input, and of each of outs."""
    start = tl.program_id(0).to(tl.int64) * BLOCK if WIDE else tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    mask = i < plain_value(n)
    values = ()
    for k in tl.static_range(len(inputs)):
        values = values + (tl.load(inputs[k] + strided(i, shape, strides[k], HINTS[k]), mask=mask, other=0),)
    results = FUNCTION(*values)
    for k in tl.static_range(len(outs)):
        at = strided(i, shape, strides[len(inputs) + k], HINTS[len(inputs) + k])
        tl.store(outs[k] + at, convert(results[k], outs[k].dtype.element_ty), mask=mask)


def fused_elements(function, inputs, outs):
    """function(*inputs) of each element, a tuple of a value for each of `outs`. inputs, outs: tensors of one shape."""
    n = outs[0].numel()
    if not n:
        return
    shape, strides = coalesce([*inputs, *outs])
    BLOCK, warps = (512, 4) if n < 4096 else (1024, 4)
    fused_elements_kernel[(triton.cdiv(n, BLOCK),)](
        tuple(inputs),
        tuple(outs),
        plain(n),
        tuple([plain(size) for size in shape]),
        tuple([tuple([plain(s) for s in stride]) if shape else () for stride in strides]),
        FUNCTION=function,
        HINTS=tuple([stride_hint(shape, stride, n >= 4096) for stride in strides]),
        WIDE=n > 2147479551 or reach(shape, strides) > 2147483647,
        BLOCK=BLOCK,
        num_warps=warps,
    )
