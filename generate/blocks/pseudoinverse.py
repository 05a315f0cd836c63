"""Products with matrix factors that drop the parts which belong to small singular values or eigenvalues."""

import math

import triton
import triton.language as tl
from blocks.offsets import integer_values, integers, strided, walk


@triton.jit
def weighted_kernel(
    left_ptr,
    weights_ptr,
    right_ptr,
    out_ptr,
    sizes,
    batch,
    strides,
    BLOCK: tl.constexpr,
):
    """Compute one BLOCK x BLOCK tile of left diag(weights) right in one batch matrix.

    Args:
        left_ptr: [batch, m, count], read with its strides.
        weights_ptr: [batch, count], read, or None for ones.
        right_ptr: [batch, count, n], read with its strides.
        out_ptr: [batch, m, n], written with its strides.
        sizes: (m, n, count), encoded by `integers`.
        batch: walk over the batch dimensions, in the order left, right, out, weights.
        strides: (row stride, column stride) in the order left, right, out, weights, encoded by `integers`.
        BLOCK: rows and columns per tile.
    """
    m, n, count = integer_values(sizes, True)
    down, across = tl.cdiv(m, BLOCK), tl.cdiv(n, BLOCK)
    matrix = (tl.program_id(0) // (down * across)).to(tl.int64)
    index = tl.program_id(0) % (down * across)
    rows = (index // across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = (index % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    left_ptr += strided(matrix, batch[0], batch[1][0], False, True)
    right_ptr += strided(matrix, batch[0], batch[1][1], False, True)
    out_ptr += strided(matrix, batch[0], batch[1][2], False, True)
    left_stride, right_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    out_stride = integer_values(strides[2], True)
    if weights_ptr is not None:
        weights_ptr += strided(matrix, batch[0], batch[1][3], False, True)
    total = tl.zeros([BLOCK, BLOCK], out_ptr.dtype.element_ty)
    for i in range(0, count):
        k = tl.full([], i, tl.int64)
        x = tl.load(left_ptr + rows * left_stride[0] + k * left_stride[1], mask=rows < m, other=0.0)
        y = tl.load(right_ptr + k * right_stride[0] + cols * right_stride[1], mask=cols < n, other=0.0)
        if weights_ptr is not None:
            x *= tl.load(weights_ptr + k * integer_values(strides[3], True)[0])
        total += x[:, None] * y[None, :]
    pointers = out_ptr + rows[:, None] * out_stride[0] + cols[None, :] * out_stride[1]
    tl.store(pointers, total, mask=(rows < m)[:, None] & (cols < n)[None, :])


def weighted_product(left, weights, right, out):
    """Compute out = left diag(weights) right, or left right if weights is None, and return `out`.

    All tensors have the same batch dimensions, and left has at least one column.
    """
    if not out.numel():
        return out
    (m, n), count = out.shape[-2:], left.shape[-1]
    matrices = [left, right, out, out if weights is None else weights.unsqueeze(-1)]
    # an empty operand has no first element, so `out` stands in for it; the kernel then reads nothing from it
    corners = [(x if x.numel() else out).select(-1, 0).select(-1, 0) for x in matrices]
    weighted_kernel[(math.prod(out.shape[:-2]) * triton.cdiv(m, 32) * triton.cdiv(n, 32),)](
        left,
        weights,
        right,
        out,
        integers((m, n, count), True),
        walk(corners, list(range(out.dim() - 2)), True),
        tuple([integers(x.stride()[-2:], True) for x in matrices]),
        BLOCK=32,
        num_warps=4,
    )
    return out


@triton.jit
def inverse_above(value, first, last, atol, rtol):
    """Return 1 / value, or 0 if |value| is at most max(atol, rtol * max(|first|, |last|)).

    `first` and `last` are the ends in the sorted values, so the larger one has the largest magnitude.
    """
    least = tl.maximum(atol, rtol * tl.maximum(tl.abs(first), tl.abs(last)))
    above = tl.abs(value) > least
    return tl.where(above, 1 / tl.where(above, value, 1.0), 0.0)


@triton.jit
def inverse_above_either(value, first, last, atol, rtol):
    """Return `inverse_above`, with rtol only if atol is not positive."""
    return inverse_above(value, first, last, atol, tl.where(atol > 0, 0.0, rtol))
