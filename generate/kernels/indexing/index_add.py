"""aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor

self is copied, unless it is the destination, and alpha times the source is added by atomics in tiles of rows and
columns, in 32 bits for narrower types, so that no partial sum is rounded. Dimensions are merged where the operands'
strides allow, and the index is loaded once a row where it does not vary within rows.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::index_add",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


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
def kernel_copy(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=i < n)
    tl.store(out_ptr + strided(i, shape, out_stride), x.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_add(
    source_ptr,
    index_ptr,
    out_ptr,
    alpha,
    m,
    n,
    col_blocks,
    step,
    shape,
    source_stride,
    out_stride,
    index_stride,
    BY_COL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    row = (tl.program_id(0) // col_blocks).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % col_blocks).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < m)[:, None] & (col < n)[None, :]
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    if BY_COL:
        index = tl.load(index_ptr + col * index_stride[-1], mask=col < n, other=0).to(tl.int64)[None, :]
    else:
        index = tl.load(index_ptr + strided(row, shape, index_stride[:-1]), mask=row < m, other=0).to(tl.int64)[:, None]
    offset = strided(row, shape, source_stride[:-1])[:, None] + col[None, :] * source_stride[-1]
    x = tl.load(source_ptr + offset, mask=mask).to(dtype) * tl.full([], alpha, dtype)
    place = strided(row, shape, out_stride[:-1])[:, None] + col[None, :] * out_stride[-1] + index * step
    tl.atomic_add(out_ptr + place, x, mask=mask, sem="relaxed")


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie alike and without gaps."""
    first = tensors[0]
    if all(t.is_contiguous() for t in tensors):
        return (first.numel(),), [(1,)] * len(tensors)
    shape, strides = tuple(first.shape), [t.stride() for t in tensors]
    dense = 1 + sum((n - 1) * s for n, s in zip(shape, strides[0], strict=True)) == first.numel()
    if dense and all(s == strides[0] for s in strides):
        return (first.numel(),), [(1,)] * len(tensors)
    return shape, strides


def copy(x, out):
    n = x.numel()
    shape, (x_stride, out_stride) = walk(x, out)
    kernel_copy[(triton.cdiv(n, 4096),)](x, out, n, shape, x_stride, out_stride, BLOCK=4096, num_warps=8)


def sums_like(out):
    """Where atomics add up: in `out` itself, or for what is narrower than 32 bits in a tensor of 32."""
    if out.dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        return out
    dtype = torch.float32 if out.is_floating_point() else torch.int32
    return torch.empty(out.shape, dtype=dtype, device=out.device)


def collapse(shape, strides):
    """The same walk in as few dimensions as the operands' strides allow: its shape, and strides of each operand."""
    sizes, steps = [], []
    for size, step in zip(shape, zip(*strides, strict=True), strict=True):
        if size == 1:
            continue
        if sizes and all(a == b * size for a, b in zip(steps[-1], step, strict=True)):
            sizes[-1], steps[-1] = sizes[-1] * size, step
        else:
            sizes.append(size)
            steps.append(step)
    if not sizes:
        sizes, steps = [1], [(0,) * len(strides)]
    return tuple(sizes), [tuple(each) for each in zip(*steps, strict=True)]


def tile(m, n):
    """Rows and columns of a program, about 2048 elements, and its warps."""
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 1024)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 2048 // BLOCK_N)
    return BLOCK_M, BLOCK_N, max(1, min(BLOCK_M * BLOCK_N // 256, 8))


def add(out, dim, index, source, alpha):
    shape, out_stride, index_stride = tuple(source.shape), list(out.stride()), [0] * out.dim()
    out_stride[dim], index_stride[dim] = 0, index.stride(0)
    walked, (source_stride, out_stride, index_stride) = collapse(shape, [source.stride(), out_stride, index_stride])
    m, n = math.prod(walked[:-1]), walked[-1]
    BLOCK_M, BLOCK_N, num_warps = tile(m, n)
    col_blocks = triton.cdiv(n, BLOCK_N)
    kernel_add[(triton.cdiv(m, BLOCK_M) * col_blocks,)](
        source,
        index,
        out,
        float(alpha) if out.is_floating_point() else int(alpha),
        m,
        n,
        col_blocks,
        out.stride(dim),
        walked[:-1],
        source_stride,
        out_stride,
        index_stride,
        BY_COL=index_stride[-1] != 0,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )


def wrapper(self, dim, index, source, *, alpha=1, out=None):
    if out is None:
        out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    sums = sums_like(out)
    if sums is not self:
        copy(self, sums)
    index = index.unsqueeze(0) if index.dim() == 0 else index
    source = source.unsqueeze(0) if source.dim() == 0 else source
    target = sums.unsqueeze(0) if sums.dim() == 0 else sums
    add(target, dim % target.dim(), index, source, alpha)
    if sums is not out:
        copy(sums, out)
    return out
