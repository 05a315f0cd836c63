"""aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)
    -> Tensor

A program reduces BLOCK_M outputs over all their elements, BLOCK_N at a time. ord 0 counts nonzeros, +-inf takes the
largest or smallest magnitude (NaN wins), 1 and 2 sum in fp32, any other ord sums |x|^p in fp64.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::linalg_vector_norm",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def power(x, p):
    """x ** p for x >= 0."""
    return tl.exp2(p * tl.log2(x))


@triton.jit
def kernel_vector_norm(
    x_ptr,
    out_ptr,
    m,
    n,
    p,
    kept_shape,
    kept_stride,
    reduced_shape,
    reduced_stride,
    ORD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    base = strided(rows, kept_shape, kept_stride)
    if ORD == "-inf":
        acc = tl.full([BLOCK_M, BLOCK_N], float("inf"), tl.float32)
    elif ORD == "p":
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float64)
    else:
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        x = tl.load(x_ptr + base[:, None] + strided(cols, reduced_shape, reduced_stride)[None, :], mask=mask, other=0)
        x = tl.abs(convert(x, out_ptr.dtype.element_ty).to(tl.float32))
        if ORD == "inf":
            acc = tl.where((x > acc) | (x != x), x, acc)
        elif ORD == "-inf":
            acc = tl.where(mask & ((x < acc) | (x != x)), x, acc)
        elif ORD == "0":
            acc += tl.where(x != 0, 1.0, 0.0)
        elif ORD == "1":
            acc += x
        elif ORD == "2":
            acc += x * x
        else:
            acc += tl.where(mask, power(x.to(tl.float64), p), 0)
    if ORD == "inf" or ORD == "-inf":
        nan = tl.sum((acc != acc).to(tl.int32), 1) > 0
        norm = tl.max(acc, 1) if ORD == "inf" else tl.min(acc, 1)
        norm = tl.where(nan, float("nan"), norm)
    else:
        norm = tl.sum(acc, 1)
    if ORD == "2":
        norm = tl.sqrt_rn(norm)
    elif ORD == "p":
        norm = power(norm, 1 / p)
    tl.store(out_ptr + rows, convert(norm, out_ptr.dtype.element_ty), mask=rows < m)


def split_dims(self, dim):
    """(kept dimensions, reduced dimensions); no dim means all of them."""
    reduced = {d % max(self.dim(), 1) for d in dim} if dim else set(range(self.dim()))
    return [d for d in range(self.dim()) if d not in reduced], [d for d in range(self.dim()) if d in reduced]


def wrapper(self, ord=2, dim=None, keepdim=False, *, dtype=None):
    known = {0: "0", 1: "1", 2: "2", math.inf: "inf", -math.inf: "-inf"}
    if dtype is None:
        dtype = self.dtype
    kept, reduced = split_dims(self, dim)
    shape = [1 if d in reduced else self.shape[d] for d in range(self.dim()) if keepdim or d in kept]
    out = torch.empty(shape, dtype=dtype, device=self.device)
    reduced_shape = tuple(self.shape[d] for d in reduced)
    m, n = out.numel(), math.prod(reduced_shape)
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 8192)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 8192 // BLOCK_N)
    kernel_vector_norm[(triton.cdiv(m, BLOCK_M),)](
        self,
        out,
        m,
        n,
        float(ord),
        tuple(self.shape[d] for d in kept),
        tuple(self.stride(d) for d in kept),
        reduced_shape,
        tuple(self.stride(d) for d in reduced),
        ORD=known.get(ord, "p"),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return out
