"""aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

A program sums BLOCK_M outputs over all their elements, BLOCK_N at a time, into a tile of partial sums that is reduced
at the end. BLOCK_M is wide where neighbouring outputs are neighbours in memory. Few outputs of many elements are summed
in parts, each by its own program into a buffer, and a second kernel adds the parts, always in the same order. Floating
point accumulates in fp32, integers and bools in int64.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::sum", "aten::sum.dim_IntList")
DTYPES = ("bfloat16", "bool", "float16", "float32", "int16", "int32", "int64", "int8", "uint8")


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
def widen(x):
    """The type to compute in: fp32 for floating point, int64 for integers and bools."""
    return x.to(tl.float32) if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def kernel_sum(
    x_ptr,
    out_ptr,
    parts_ptr,
    m,
    n,
    part,
    kept_shape,
    kept_stride,
    reduced_shape,
    reduced_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sums of the elements of part program_id(1), converted to the type of out, to parts_ptr; to out if it is None."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    base = strided(rows, kept_shape, kept_stride)
    acc = widen(tl.zeros([BLOCK_M, BLOCK_N], out_ptr.dtype.element_ty))
    first = tl.program_id(1).to(tl.int64) * part
    for start in range(0, part, BLOCK_N):
        cols = first + start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        x = tl.load(x_ptr + base[:, None] + strided(cols, reduced_shape, reduced_stride)[None, :], mask=mask, other=0)
        acc += widen(convert(x, out_ptr.dtype.element_ty))
    total = tl.sum(acc, 1)
    if parts_ptr is None:
        tl.store(out_ptr + rows, total.to(out_ptr.dtype.element_ty), mask=rows < m)
    else:
        tl.store(parts_ptr + tl.program_id(1).to(tl.int64) * m + rows, total, mask=rows < m)


@triton.jit
def kernel_add_parts(parts_ptr, out_ptr, m, count, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    """out = the sum of `count` parts of m elements each, of which CHUNK are read at a time."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([CHUNK, BLOCK], parts_ptr.dtype.element_ty)
    for start in range(0, count, CHUNK):
        k = (start + tl.arange(0, CHUNK)).to(tl.int64)
        acc += tl.load(parts_ptr + k[:, None] * m + i[None, :], mask=(k < count)[:, None] & (i < m)[None, :], other=0)
    tl.store(out_ptr + i, tl.sum(acc, 0).to(out_ptr.dtype.element_ty), mask=i < m)


def split_dims(self, dim):
    """(kept dimensions, reduced dimensions); no dim means all of them."""
    reduced = {d % max(self.dim(), 1) for d in dim} if dim else set(range(self.dim()))
    return [d for d in range(self.dim()) if d not in reduced], [d for d in range(self.dim()) if d in reduced]


def blocks(m, n, stride, reduced_stride):
    """BLOCK_M and BLOCK_N: the longer along the smaller of the two innermost strides."""
    if m > 1 and n > 1 and stride < reduced_stride:
        BLOCK_M = min(triton.next_power_of_2(m), 128)
        return BLOCK_M, min(triton.next_power_of_2(n), 8192 // BLOCK_M)
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 8192)
    return min(triton.next_power_of_2(max(m, 1)), 8192 // BLOCK_N), BLOCK_N


def split(m, n, BLOCK_M, BLOCK_N):
    """Number of parts of n, of two steps each at the least, and their length: four programs for 132 processors each."""
    parts = max(min(528 // max(triton.cdiv(m, BLOCK_M), 1), n // (2 * BLOCK_N)), 1)
    part = triton.cdiv(triton.cdiv(n, parts), BLOCK_N) * BLOCK_N
    return max(triton.cdiv(n, part), 1) if part else 1, part


def wrapper(self, dim=None, keepdim=False, *, dtype=None):
    if dtype is None:
        dtype = self.dtype if self.is_floating_point() else torch.int64
    kept, reduced = split_dims(self, dim)
    shape = [1 if d in reduced else self.shape[d] for d in range(self.dim()) if keepdim or d in kept]
    out = torch.empty(shape, dtype=dtype, device=self.device)
    reduced_shape = tuple(self.shape[d] for d in reduced)
    kept_stride, reduced_stride = (tuple(self.stride(d) for d in dims) for dims in (kept, reduced))
    m, n = out.numel(), math.prod(reduced_shape)
    BLOCK_M, BLOCK_N = blocks(m, n, kept_stride[-1] if kept else 0, reduced_stride[-1] if reduced else 0)
    parts, part = split(m, n, BLOCK_M, BLOCK_N)
    sums = None
    if parts > 1:
        wide = torch.float32 if dtype.is_floating_point else torch.int64
        sums = torch.empty((parts, m), dtype=wide, device=self.device)
    kernel_sum[(triton.cdiv(m, BLOCK_M), parts)](
        self,
        out,
        sums,
        m,
        n,
        part,
        tuple(self.shape[d] for d in kept),
        kept_stride,
        reduced_shape,
        reduced_stride,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    if parts > 1:
        CHUNK = min(triton.next_power_of_2(parts), 128)
        grid = (triton.cdiv(m, 2048 // CHUNK),)
        kernel_add_parts[grid](sums, out, m, parts, BLOCK=2048 // CHUNK, CHUNK=CHUNK, num_warps=4)
    return out
