"""Padded copies of matrix operands whose rows cannot be read 16 elements at a time."""

import torch
import triton
import triton.language as tl

# A padded copy takes little of the time of a product with this many multiply-adds (those of three sizes of 512), unless
# the product has so few rows or columns that each copied element is used little.
LEAST_PADDED_WORK = 2**27
LEAST_PADDED_SIDE = 64

__all__ = ["readable_operands"]


@triton.jit
def pad_kernel(x_ptr, out_ptr, R, C, height, width, stride, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Copy x, [R, C], into out, [height, width], with zeros to the right and below.

    Args:
        x_ptr: [R, C], read with `stride`.
        out_ptr: [height, width], contiguous, written.
        R: Rows of x.
        C: Columns of x.
        height: Rows of out, at least R.
        width: Columns of out, at least C.
        stride: Strides of x between rows and between columns.
        BLOCK_R: Rows per tile.
        BLOCK_C: Columns per tile.
    """
    across = tl.cdiv(width, BLOCK_C)
    rows = ((tl.program_id(0) // across).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R))[:, None]
    cols = ((tl.program_id(0) % across).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C))[None, :]
    x = tl.load(x_ptr + rows * stride[0] + cols * stride[1], mask=(rows < R) & (cols < C), other=0.0)
    tl.store(out_ptr + rows * width + cols, x, mask=(rows < height) & (cols < width))


def _upright(x):
    """Return True if x is stored column by column."""
    return x.stride(0) == 1 and x.stride(1) != 1


def _ragged(x):
    """Return True if x cannot be read 16 elements at a time along its contiguous dimension."""
    inner = 0 if _upright(x) else 1
    return x.stride(inner) != 1 or x.stride(1 - inner) % 16 != 0 or x.shape[inner] % 16 != 0


def _padded(x, height, width):
    """Return a copy of x in a zero-padded matrix with this height and width.

    The contiguous dimension may be up to 15 elements longer.
    """
    if _upright(x):
        return _padded(x.transpose(0, 1), width, height).transpose(0, 1)
    width = triton.cdiv(width, 16) * 16  # 16 elements of at least 2 bytes are whole 16-byte loads
    out = torch.empty((height, width), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(height, 32) * triton.cdiv(width, 128),)
    pad_kernel[grid](x, out, x.shape[0], x.shape[1], height, width, x.stride(), BLOCK_R=32, BLOCK_C=128, num_warps=8)
    return out


def readable_operands(a, b, BLOCK_K):
    """Return a and b, or padded copies of ragged operands before a large product.

    If K is the ragged dimension, both operands are padded along K to a multiple of BLOCK_K.
    """
    (M, K), N = a.shape, b.shape[1]
    if min(M, N) < LEAST_PADDED_SIDE or M * N * K < LEAST_PADDED_WORK or not (_ragged(a) or _ragged(b)):
        return a, b
    along = (_ragged(a) and not _upright(a)) or (_ragged(b) and _upright(b))
    depth = triton.cdiv(K, BLOCK_K) * BLOCK_K if along else K
    a = _padded(a, M, depth) if _ragged(a) or depth != K else a
    return a, _padded(b, depth, N) if _ragged(b) or depth != K else b
