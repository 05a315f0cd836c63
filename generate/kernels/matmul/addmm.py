"""aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

One program a tile of beta * self + alpha * mat1 @ mat2; self is broadcast through strides of 0 and not read where beta
is 0. fp32 products are exact ("ieee"); fp16 and bf16 are multiplied as tf32, which holds them exactly. All types
accumulate in fp32.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::addmm",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def kernel_addmm(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    beta,
    alpha,
    bias_stride,
    a_stride,
    b_stride,
    out_stride,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask = (rows < M)[:, None] & (ks < K)[None, :]
        b_mask = (ks < K)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * a_stride[0] + ks[None, :] * a_stride[1], mask=a_mask, other=0).to(
            tl.float32
        )
        b = tl.load(b_ptr + ks[:, None] * b_stride[0] + cols[None, :] * b_stride[1], mask=b_mask, other=0).to(
            tl.float32
        )
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    acc *= alpha
    if HAS_BIAS:
        bias = tl.load(bias_ptr + rows[:, None] * bias_stride[0] + cols[None, :] * bias_stride[1], mask=mask)
        acc += beta * bias.to(tl.float32)
    tl.store(
        out_ptr + rows[:, None] * out_stride[0] + cols[None, :] * out_stride[1],
        acc.to(out_ptr.dtype.element_ty),
        mask=mask,
    )


def wrapper(self, mat1, mat2, *, beta=1, alpha=1):
    (M, K), N = mat1.shape, mat2.shape[1]
    bias = self.expand(M, N)
    out = torch.empty((M, N), dtype=self.dtype, device=self.device)
    BLOCK_M, BLOCK_N = (min(max(triton.next_power_of_2(size), 16), 128) for size in (M, N))
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    kernel_addmm[grid](
        mat1,
        mat2,
        bias,
        out,
        M,
        N,
        K,
        beta,
        alpha,
        bias.stride(),
        mat1.stride(),
        mat2.stride(),
        out.stride(),
        HAS_BIAS=beta != 0,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=32,
        PRECISION="ieee" if self.dtype == torch.float32 else "tf32",
        num_warps=8,
    )
    return out
