"""aten::bmm(Tensor self, Tensor mat2) -> Tensor

One program a tile of one matrix of the batch; tiles that share rows of self run near each other. Operands are read
through their own strides, so transposed views cost no copy. fp16 and bf16 are multiplied as they are. fp32 is split
into two numbers of tf32's 11 bits, of whose products all but the least are added up: 22 bits of each operand count.
Sums are in fp32. Integers and fp64 are added up in int64 and fp64, without tensor cores. Matrices of up to 32 by 32 are
one program of one warp each, which reads its operands at once.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::bmm",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int32", "int64")


@triton.jit
def leading(x):
    """x cut to the 11 significant bits that tf32 has."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def dot(a, b, acc, SPLIT: tl.constexpr):
    """acc + a @ b; SPLIT: of fp32, by three products of tf32. Rests of infinity, and infinity by a rest of 0, are NaN:
    then no rests count. Integers and fp64, which tl.dot does not take, are multiplied one by one."""
    if SPLIT:
        a_high, b_high = leading(a), leading(b)
        a_rest, b_rest = a - a_high, b - b_high
        small = tl.dot(a_rest, b_high, input_precision="tf32")
        small = tl.dot(a_high, b_rest, small, input_precision="tf32")
        small = tl.where(small == small, small, 0.0)
        acc += tl.dot(a_high, b_high, small, input_precision="tf32")
    elif acc.dtype == tl.float32:
        acc = tl.dot(a, b, acc)
    else:
        acc += tl.sum(a.to(acc.dtype)[:, :, None] * b.to(acc.dtype)[None, :, :], 1)
    return acc


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
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
    SPLIT: tl.constexpr,
):
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    index = tl.program_id(0) % (down * across)
    group = index // (GROUP * across)
    height = tl.minimum(down - group * GROUP, GROUP)
    inside = index % (GROUP * across)
    rows = (group * GROUP + inside % height).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (inside // height).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptr += batch * a_stride[0] + (rows % M)[:, None] * a_stride[1] + ks[None, :] * a_stride[2]
    b_ptr += batch * b_stride[0] + ks[:, None] * b_stride[1] + (cols % N)[None, :] * b_stride[2]
    element = a_ptr.dtype.element_ty
    wide = tl.float64 if element.is_fp64() else tl.int64 if element.is_int() else tl.float32
    acc = tl.zeros([BLOCK_M, BLOCK_N], wide)
    step = tl.full([], BLOCK_K, tl.int64)  # times a stride, which may be more than 2^31
    for start in range(0, K, BLOCK_K):
        if EVEN:
            a = tl.load(a_ptr)
            b = tl.load(b_ptr)
        else:
            left = K - start
            a = tl.load(a_ptr, mask=(tl.arange(0, BLOCK_K) < left)[None, :], other=0.0)
            b = tl.load(b_ptr, mask=(tl.arange(0, BLOCK_K) < left)[:, None], other=0.0)
        acc = dot(a, b, acc, SPLIT)
        a_ptr += step * a_stride[2]
        b_ptr += step * b_stride[1]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    out_ptr += batch * out_stride[0]
    out_ptr += rows[:, None] * out_stride[1] + cols[None, :] * out_stride[2]
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_bmm_small(
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
    SPLIT: tl.constexpr,
):
    """One matrix of the batch, which BLOCK_M by BLOCK_N covers, as BLOCK_K does K."""
    batch = tl.program_id(0).to(tl.int64)
    rows, cols = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
    across, down = tl.arange(0, BLOCK_K)[None, :], tl.arange(0, BLOCK_K)[:, None]
    a_ptr += batch * a_stride[0] + rows.to(tl.int64) * a_stride[1] + across.to(tl.int64) * a_stride[2]
    b_ptr += batch * b_stride[0] + down.to(tl.int64) * b_stride[1] + cols.to(tl.int64) * b_stride[2]
    a = tl.load(a_ptr, mask=(rows < M) & (across < K), other=0.0)
    b = tl.load(b_ptr, mask=(down < K) & (cols < N), other=0.0)
    acc = dot(a, b, tl.zeros([BLOCK_M, BLOCK_N], tl.float32), SPLIT)
    out_ptr += batch * out_stride[0] + rows * out_stride[1] + cols * out_stride[2]
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=(rows < M) & (cols < N))


def tile(B, M, N, K, half):
    """BLOCK_M, BLOCK_N, BLOCK_K and warps; smaller tiles where these would leave processors idle and K is short."""
    BLOCK_M, BLOCK_N = (min(max(triton.next_power_of_2(size), 16), 128 if half else 64) for size in (M, N))
    small = 4096 if half else 1024
    while K < 2048 and small < BLOCK_M * BLOCK_N and B * triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) < 128:
        BLOCK_M, BLOCK_N = (BLOCK_M // 2, BLOCK_N) if BLOCK_M > BLOCK_N else (BLOCK_M, BLOCK_N // 2)
    return BLOCK_M, BLOCK_N, 64 if half else 32, 8 if BLOCK_M * BLOCK_N == 16384 else 4


def one_warp(self, mat2, out):
    """out = self @ mat2 of matrices of up to 32 by 32."""
    (B, M, K), N = self.shape, mat2.shape[2]
    BLOCK_M, BLOCK_N, BLOCK_K = (max(triton.next_power_of_2(size), 16) for size in (M, N, K))
    kernel_bmm_small[(B,)](
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
        BLOCK_K=BLOCK_K,
        SPLIT=self.dtype == torch.float32,
        num_warps=1,
    )
    return out


def wrapper(self, mat2):
    (B, M, K), N = self.shape, mat2.shape[2]
    out = torch.empty((B, M, N), dtype=self.dtype, device=self.device)
    half, single = self.dtype in (torch.float16, torch.bfloat16), self.dtype == torch.float32
    BLOCK_M, BLOCK_N, BLOCK_K, warps = tile(B, M, N, K, half) if half or single else (16, 16, 16, 4)
    tiles = B * triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    if tiles == 0:
        return out
    if (half or single) and B < 2**31 and max(M, N, K) <= 32:
        return one_warp(self, mat2, out)
    kernel_bmm[(tiles,)](
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
        BLOCK_K=BLOCK_K,
        GROUP=8,
        EVEN=K % BLOCK_K == 0,
        SPLIT=single,
        num_warps=warps,
        num_stages=3,
    )
    return out
