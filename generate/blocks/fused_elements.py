"""Several element-wise operators in one launch: one function computes all stored values from the raw inputs.

Used by generated kernels for fused subgraphs. The function chooses its own compute types, because operands may
have any dtype.
"""

import triton
import triton.language as tl
from blocks.elementwise import SHORT_LAUNCH
from blocks.limits import INT32_MAX
from blocks.offsets import coalesce, empty_result, plain, plain_value, reach, stride_hint, strided
from blocks.types import convert

__all__ = ["broadcast_shape", "expect_shapes", "fused_elements", "lying", "viewed_shape"]


def expect_shapes(tensors, expected):
    """Raise RuntimeError unless the tensors have the shapes for which the kernel was composed.

    A shape has 1 for a dimension with one element, and None for any other size.
    """
    for t, shape in zip(tensors, expected, strict=True):
        if tuple([1 if n == 1 else None for n in t.shape]) != shape:
            raise RuntimeError(
                f"shape {tuple(t.shape)} does not match {shape}, for which this kernel was composed (None: not 1)"
            )


def broadcast_shape(*shapes):
    """Return the shape to which these shapes broadcast; raise RuntimeError if they cannot."""
    shapes = [tuple(shape) for shape in shapes]
    if all([shape == shapes[0] for shape in shapes]):
        return shapes[0]
    reversed_shape = []
    for k in range(max([len(shape) for shape in shapes])):
        sizes = {shape[-1 - k] for shape in shapes if k < len(shape)} - {1}
        if len(sizes) > 1:
            raise RuntimeError(f"shapes {shapes} cannot be broadcast")
        reversed_shape.append(sizes.pop() if sizes else 1)
    return tuple(reversed_shape[::-1])


def viewed_shape(shape, size):
    """Return the shape that `view(size)` gives a tensor with this shape; one entry in `size` may be -1.

    Raises RuntimeError if the element count differs.
    """
    count, known = 1, 1
    for n in shape:
        count *= n
    for n in size:
        known *= 1 if n == -1 else n
    result = tuple([count // max(known, 1) if n == -1 else n for n in size])
    if -1 not in size and known != count:
        raise RuntimeError(f"cannot view {tuple(shape)} as {tuple(size)}")
    return result


def lying(shape, dtype, tensors):
    """Return a new tensor with this shape and dtype, in the memory order of the tensors broadcast to it."""
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
    """Compute BLOCK elements per program instance.

    Args:
        inputs: Tuple of pointers to tensors that broadcast to `shape`, read.
        outs: Tuple of pointers to tensors of `shape`, written.
        n: Element count, encoded by `plain`.
        shape: Common shape, encoded by `plain`; () if all tensors are dense.
        strides: Strides of each input and then of each output, in elements, encoded by `plain`; () if dense.
        FUNCTION: Triton function that takes the loaded values and returns a tuple with a value per output.
        HINTS: `stride_hint` for each input and output.
        WIDE: True to use 64-bit offsets.
        BLOCK: Elements per program instance.
    """
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
    """Compute function(*inputs) element by element; its tuple of values goes to `outs`. All tensors have one shape."""
    n = outs[0].numel()
    if not n:
        return
    shape, strides = coalesce([*inputs, *outs])
    BLOCK, warps = (512, 4) if n < SHORT_LAUNCH else (1024, 4)
    fused_elements_kernel[(triton.cdiv(n, BLOCK),)](
        tuple(inputs),
        tuple(outs),
        plain(n),
        tuple([plain(size) for size in shape]),
        tuple([tuple([plain(s) for s in stride]) if shape else () for stride in strides]),
        FUNCTION=function,
        HINTS=tuple([stride_hint(shape, stride, n >= SHORT_LAUNCH) for stride in strides]),
        # The margin covers masked lanes: the last program instance counts on beyond n by less than BLOCK.
        WIDE=n > INT32_MAX - 4096 or reach(shape, strides) > INT32_MAX,
        BLOCK=BLOCK,
        num_warps=warps,
    )
