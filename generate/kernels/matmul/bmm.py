"""aten::bmm(Tensor self, Tensor mat2) -> Tensor

One program a tile of one matrix of the batch; operands are read through their own strides. fp32 products are exact
("ieee"); fp16 and bf16 are multiplied as tf32, which holds them exactly. All types accumulate in fp32.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::bmm",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def kernel_bmm(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_stride,
    b_stride,
    out_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * a_stride[0]
    b_ptr += batch * b_stride[0]
    out_ptr += batch * out_stride[0]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask = (rows < M)[:, None] & (ks < K)[None, :]
        b_mask = (ks < K)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * a_stride[1] + ks[None, :] * a_stride[2], mask=a_mask, other=0).to(
            tl.float32
        )
        b = tl.load(b_ptr + ks[:, None] * b_stride[1] + cols[None, :] * b_stride[2], mask=b_mask, other=0).to(
            tl.float32
        )
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(
        out_ptr + rows[:, None] * out_stride[1] + cols[None, :] * out_stride[2],
        acc.to(out_ptr.dtype.element_ty),
        mask=mask,
    )


def wrapper(self, mat2):
    (B, M, K), N = self.shape, mat2.shape[2]
    out = torch.empty((B, M, N), dtype=self.dtype, device=self.device)
    BLOCK_M, BLOCK_N = (min(max(triton.next_power_of_2(size), 16), 128) for size in (M, N))
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N), B)
    kernel_bmm[grid](
        self,
        mat2,
        out,
        M,
        N,
        K,
        self.stride(),
        mat2.stride(),
        out.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=32,
        PRECISION="ieee" if self.dtype == torch.float32 else "tf32",
        num_warps=8,
    )
    return out
