"""Matrix products with one or two int8 operands.

Two int8 operands accumulate in int32. One int8 operand is converted to the other's dtype, and the sums are in
fp32.
"""

import torch
import triton
import triton.language as tl
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer_values, integers, stride_arguments, stride_values
from blocks.product_tiles import tile_product


@triton.jit
def int8_matmul_kernel(a_ptr, b_ptr, scales_ptr, out_ptr, sizes, strides, TILE: tl.constexpr, PLAIN: tl.constexpr):
    """Compute one tile of a @ b, times one scale per column if there are scales.

    Args:
        a_ptr: [M, K], int8 or floating point, read with its strides.
        b_ptr: [K, N], int8, read with its strides.
        scales_ptr: [N] or None, read with its stride.
        out_ptr: [M, N], contiguous, written.
        sizes: M, N and K.
        strides: Strides of a, of b, and of the scales.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K.
        PLAIN: True if sizes are encoded by `plain`, and strides by `stride_arguments`.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_K: tl.constexpr = TILE[2]
    M, N, K = integer_values(sizes, PLAIN)
    a_stride, b_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    across = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * a_stride[0] + k[None, :] * a_stride[1],
            mask=(rows < M)[:, None] & (k < K)[None, :],
            other=0,
        )
        b = tl.load(
            b_ptr + k[:, None] * b_stride[0] + cols[None, :] * b_stride[1],
            mask=(k < K)[:, None] & (cols < N)[None, :],
            other=0,
        )
        # before 3.7 Triton assumes that every product is fp32, and rejects the int32 sum
        if a.dtype == tl.int8:  # noqa: SIM108
            acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        else:
            acc = tile_product(a, b.to(a.dtype), acc)
    if scales_ptr is not None:
        scale = tl.load(scales_ptr + cols * stride_values(strides[2], PLAIN)[0], mask=cols < N, other=0)
        acc *= scale.to(acc.dtype)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)


def int8_matmul(a, b, scales, dtype):
    """Return a @ b in a new matrix of this dtype, with columns multiplied by `scales` unless it is None.

    a is [M, K] and b is [K, N] of int8. Raises RuntimeError if the shapes do not match.
    """
    (M, K), N = a.shape, b.shape[1]
    if b.shape[0] != K:
        raise RuntimeError(f"cannot multiply {tuple(a.shape)} by {tuple(b.shape)}")
    out = torch.empty((M, N), dtype=dtype, device=a.device)
    if M * N:
        small = max(M * K, K * N, M * N) < SMALL_TENSOR
        tile = (16, 32, 32) if small else (32 if M <= 32 else 64, 128, 64)
        strides = [() if t is None else stride_arguments(t.stride(), small) for t in (a, b, scales)]
        int8_matmul_kernel[(triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]),)](
            a, b, scales, out, integers((M, N, K), small), tuple(strides), TILE=tile, PLAIN=small, num_warps=4
        )
    return out
