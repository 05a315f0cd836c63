"""aten::bmm(Tensor self, Tensor mat2) -> Tensor

If M, N and K are at most 32 (fp16, bf16 and fp32), one program instance with a single warp computes each
matrix, and loads its operands at once.
"""

import torch
import triton
import triton.language as tl
from blocks.complex_systems import complex_of_products, signed_parts
from blocks.matmul import launch_matmul, matmul_strides, matmul_tile
from blocks.offsets import integer_values, integers, stride_values
from blocks.product_tiles import SCALAR_TILE, tile_product
from blocks.types import identical_dtypes

OVERLOADS = ("aten::bmm",)
DTYPES = ("bfloat16", "complex64", "float16", "float32", "float64", "int32", "int64")

SMALL_BMM = 4096  # elements below which integers are encoded, so that sizes and strides add no kernel variants
ONE_WARP = 32  # largest M, N and K for a single warp, which has all operands in registers


@triton.jit
def one_warp_kernel(a_ptr, b_ptr, out_ptr, sizes, a_stride, b_stride, TILE: tl.constexpr, PLAIN: tl.constexpr):
    """Compute one matrix in the batch; TILE covers it whole.

    Args:
        a_ptr: [B, M, K], read.
        b_ptr: [B, K, N], read.
        out_ptr: [B, M, N], contiguous, written.
        sizes: (M, N, K).
        a_stride: The three strides of a, from `matmul_strides`.
        b_stride: The three strides of b, from `matmul_strides`.
        TILE: (BLOCK_M, BLOCK_N, BLOCK_K), at least (M, N, K).
        PLAIN: True if sizes and strides are encoded.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    M, N, K = integer_values(sizes, PLAIN)
    a_stride, b_stride = stride_values(a_stride, PLAIN), stride_values(b_stride, PLAIN)
    batch = tl.program_id(0).to(tl.int64)
    rows, cols = tl.arange(0, TILE[0])[:, None], tl.arange(0, TILE[1])[None, :]
    across, down = tl.arange(0, TILE[2])[None, :], tl.arange(0, TILE[2])[:, None]
    a_ptr += batch * a_stride[0] + rows.to(tl.int64) * a_stride[1] + across.to(tl.int64) * a_stride[2]
    b_ptr += batch * b_stride[0] + down.to(tl.int64) * b_stride[1] + cols.to(tl.int64) * b_stride[2]
    a = tl.load(a_ptr, mask=(rows < M) & (across < K), other=0.0)
    b = tl.load(b_ptr, mask=(down < K) & (cols < N), other=0.0)
    acc = tile_product(a, b, tl.zeros([BLOCK_M, BLOCK_N], tl.float32))
    out_ptr += batch * M * N + rows * N + cols
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < M) & (cols < N))


def launch_one_warp(a, b, out):
    (B, M, K), N = a.shape, b.shape[2]
    small = max(B * M * K, B * K * N, out.numel()) < SMALL_BMM
    one_warp_kernel[(B,)](
        a,
        b,
        out,
        integers((M, N, K), small),
        matmul_strides(a, small),
        matmul_strides(b, small),
        TILE=(ONE_WARP, ONE_WARP, ONE_WARP)
        if small
        else tuple([max(triton.next_power_of_2(size), 16) for size in (M, N, K)]),
        PLAIN=small,
        num_warps=1,
    )


def real_bmm(self, mat2):
    (B, M, K), N = self.shape, mat2.shape[2]
    if mat2.shape[:2] != (B, K):
        raise RuntimeError(f"cannot multiply {tuple(self.shape)} by {tuple(mat2.shape)}")
    out = torch.empty((B, M, N), dtype=self.dtype, device=self.device)
    half = self.dtype in (torch.float16, torch.bfloat16)
    tile = SCALAR_TILE
    if half or self.dtype == torch.float32:
        tile = matmul_tile(B, M, N, K, half, (128, 128) if half else (64, 64))
        if out.numel() and B < 2**31 and max(M, N, K) <= ONE_WARP:  # a grid has fewer than 2^31 programs
            launch_one_warp(self, mat2, out)
            return out
    if out.numel():
        launch_matmul(self, mat2, None, out, (0, 1), tile)
    return out


def wrapper(self, mat2):
    identical_dtypes(self, mat2)
    if self.dtype == torch.bool:
        raise RuntimeError(f"bmm does not support {self.dtype}")
    if self.is_complex():
        (a, b, s), (c, d, t) = signed_parts(self), signed_parts(mat2)
        return complex_of_products(real_bmm(a, c), real_bmm(b, d), real_bmm(a, d), real_bmm(b, c), (s, t))
    return real_bmm(self, mat2)
