"""Products with the factors of a matrix that leave out what belongs to small values."""

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
    m, n, count = integer_values(sizes, True)
    down, across = tl.cdiv(m, BLOCK), tl.cdiv(n, BLOCK)
    which = (tl.program_id(0) // (down * across)).to(tl.int64)
    index = tl.program_id(0) % (down * across)
    rows = (index // across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = (index % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    left_ptr += strided(which, batch[0], batch[1][0], False, True)
    right_ptr += strided(which, batch[0], batch[1][1], False, True)
    out_ptr += strided(which, batch[0], batch[1][2], False, True)
    left_stride, right_stride = integer_values(strides[0], True), integer_values(strides[1], True)
    out_stride = integer_values(strides[2], True)
    if weights_ptr is not None:
        weights_ptr += strided(which, batch[0], batch[1][3], False, True)
    total = tl.zeros([BLOCK, BLOCK], out_ptr.dtype.element_ty)
    for i in range(0, count):
        k = tl.full([], i, tl.int64)
        x = tl.load(left_ptr + rows * left_stride[0] + k * left_stride[1], mask=rows < m, other=0.0)
        y = tl.load(right_ptr + k * right_stride[0] + cols * right_stride[1], mask=cols < n, other=0.0)
        if weights_ptr is not None:
            x *= tl.load(weights_ptr + k * integer_values(strides[3], True)[0])
        total += x[:, None] * y[None, :]
    place = out_ptr + rows[:, None] * out_stride[0] + cols[None, :] * out_stride[1]
    tl.store(place, total, mask=(rows < m)[:, None] & (cols < n)[None, :])


def weighted_product(left, weights, right, out):
    """out = left diag(weights) right, or, for None, left right, all of one batch; left has columns."""
    if not out.numel():
        return out
    (m, n), count = out.shape[-2:], left.shape[-1]
    matrices = [left, right, out, out if weights is None else weights.unsqueeze(-1)]
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
    """The reciprocal of a value, or 0 where its size is not above atol and rtol times that of the larger end's."""
    least = tl.maximum(atol, rtol * tl.maximum(tl.abs(first), tl.abs(last)))
    above = tl.abs(value) > least
    return tl.where(above, 1 / tl.where(above, value, 1.0), 0.0)


@triton.jit
def inverse_above_either(value, first, last, atol, rtol):
    """Likewise, with rtol where atol is not positive alone."""
    return inverse_above(value, first, last, atol, tl.where(atol > 0, 0.0, rtol))
