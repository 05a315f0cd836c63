"""aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

The batch and K form a single sum, which is split into parts if the output has few tiles. self is broadcast
through stride 0. It is not read if beta is 0. The matrices are not read if alpha is 0.
"""

import torch
import triton
import triton.language as tl
from blocks.limits import PROCESSORS
from blocks.matmul import NO_ENDING, PART_STEPS, add_parts_kernel, matmul_strides, matmul_tile, without_terms
from blocks.number_range import without_overflow
from blocks.offsets import integer_values, integers, stride_values
from blocks.product_tiles import SCALAR_TILE, plus_bias, tile_product
from blocks.types import compute_types, identical_dtypes, number_argument

OVERLOADS = ("aten::addbmm",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

SMALL_ADDBMM = 4096  # elements below which integers are encoded, so that sizes and strides add no kernel variants
ADDED_ELEMENTS = 2048  # elements that a program instance adds up: parts x elements of the output


@triton.jit
def sum_of_products_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    sizes,
    strides,
    numbers,
    TILE: tl.constexpr,
    ACC: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Compute tile program_id(0) of the sum over the steps in part program_id(1).

    A step is BLOCK_K columns in one of the matrices.

    Args:
        a_ptr: [B, M, K], read.
        b_ptr: [B, K, N], read.
        bias_ptr: [M, N], read, or None.
        out_ptr: [parts, M, N], contiguous, written.
        sizes: (M, N, K, steps, steps per part).
        strides: Strides for a, b and bias, from `matmul_strides`.
        numbers: (beta, alpha), encoded by `number_argument`.
        TILE: (BLOCK_M, BLOCK_N, BLOCK_K).
        ACC: Triton type of the sum.
        PLAIN: True if sizes and strides are encoded.
    """
    M, N, K, steps, part = integer_values(sizes, PLAIN)
    a_stride, b_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    across = tl.cdiv(N, TILE[1])
    rows = (tl.program_id(0) // across).to(tl.int64) * TILE[0] + tl.arange(0, TILE[0])[:, None]
    cols = (tl.program_id(0) % across).to(tl.int64) * TILE[1] + tl.arange(0, TILE[1])[None, :]
    a_ptr += rows * a_stride[1]
    b_ptr += cols * b_stride[2]
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    first = tl.program_id(1) * part
    for step in range(first, tl.minimum(first + part, steps)):
        batch = (step // tl.cdiv(K, TILE[2])).to(tl.int64)
        k = (step % tl.cdiv(K, TILE[2])).to(tl.int64) * TILE[2]
        across_k, down_k = k + tl.arange(0, TILE[2])[None, :], k + tl.arange(0, TILE[2])[:, None]
        mask = (rows < M) & (across_k < K)
        a = tl.load(a_ptr + batch * a_stride[0] + across_k * a_stride[2], mask=mask, other=0)
        mask = (down_k < K) & (cols < N)
        b = tl.load(b_ptr + batch * b_stride[0] + down_k * b_stride[1], mask=mask, other=0)
        acc = tile_product(a, b, acc)
    mask = (rows < M) & (cols < N)
    acc = plus_bias(acc, bias_ptr, rows, cols, stride_values(strides[2], PLAIN), mask, numbers)
    offset = tl.program_id(1).to(tl.int64) * M * N + rows * N + cols
    tl.store(out_ptr + offset, acc.to(out_ptr.dtype.element_ty), mask=mask)


def launch_sum_of_products(a, b, bias, out, numbers, tile, steps, parts, part):
    (B, M, K), N = a.shape, b.shape[2]
    small = B * max(M * K, K * N, M * N) < SMALL_ADDBMM
    sum_of_products_kernel[(triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]), parts)](
        a,
        b,
        bias,
        out,
        integers((M, N, K, steps, part), small),
        (matmul_strides(a, small), matmul_strides(b, small), matmul_strides(bias, small)),
        tuple([number_argument(v, out.dtype) for v in numbers]),
        TILE=tile[:3],
        ACC=compute_types(out.dtype)[1],
        PLAIN=small,
        num_warps=tile[3],
    )


def wrapper(self, batch1, batch2, *, beta=1, alpha=1):
    identical_dtypes(self, batch1, batch2)
    if self.dtype == torch.bool:
        raise RuntimeError(f"addbmm does not support {self.dtype}")
    if not self.dtype.is_floating_point:
        without_overflow(self.dtype, beta, alpha)
    if alpha == 0:
        batch1, batch2 = without_terms(batch1, batch2)
    (B, M, K), N = batch1.shape, batch2.shape[2]
    if batch2.shape[:2] != (B, K):
        raise RuntimeError(f"cannot multiply {tuple(batch1.shape)} by {tuple(batch2.shape)}")
    out = torch.empty((M, N), dtype=self.dtype, device=self.device)
    bias = None if beta == 0 else self.expand(M, N)
    half = self.dtype in (torch.float16, torch.bfloat16)
    tensor_cores = half or self.dtype == torch.float32
    tile = matmul_tile(1, M, N, B * K, half, (128, 128) if half else (64, 64)) if tensor_cores else SCALAR_TILE
    tile = *tile[:2], min(tile[2], max(triton.next_power_of_2(max(K, 1)), 16)), tile[3]
    steps = B * triton.cdiv(K, tile[2])
    tiles = triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1])
    numbers = beta, alpha if steps else 0  # an empty sum stays 0, even if alpha is infinite
    if tiles == 0:
        return out
    part = max(triton.cdiv(steps, max(2 * PROCESSORS // tiles, 1)), PART_STEPS) if tensor_cores else max(steps, 1)
    parts = max(triton.cdiv(steps, part), 1)
    if parts == 1:
        launch_sum_of_products(batch1, batch2, bias, out, numbers, tile, steps, 1, part)
        return out
    sums = torch.empty((parts, M, N), dtype=torch.float32, device=self.device)
    launch_sum_of_products(batch1, batch2, None, sums, (0, 1), tile, steps, parts, part)
    CHUNK = min(triton.next_power_of_2(parts), 64)
    arguments = matmul_strides(bias, False), tuple([number_argument(v, self.dtype) for v in numbers])
    add_parts_kernel[(triton.cdiv(M * N, ADDED_ELEMENTS // CHUNK),)](
        sums,
        bias,
        out,
        NO_ENDING[1:],
        M * N,
        N,
        parts,
        *arguments,
        BLOCK=ADDED_ELEMENTS // CHUNK,
        CHUNK=CHUNK,
        EPILOGUE=None,
    )
    return out
