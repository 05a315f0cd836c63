"""aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor

self is copied, unless it is the destination, and the values are scattered in tiles of rows and columns, dimensions
merged where all operands' strides allow. Accumulation is by atomics, in 32 bits for narrower types, so that no partial
sum is rounded. Masks become indices first: counted by block, the counts summed, and the total read back, since it is a
size.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::index_put", "aten::_index_put_impl")
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
def places(
    indices,
    row,
    col,
    m,
    n,
    shape,
    index_strides,
    sizes,
    steps,
    BY_ROW: tl.constexpr,
    BY_COL: tl.constexpr,
):
    """What the index tensors add to the offset in the indexed tensor; broadcast over what they do not depend on."""
    offset = tl.zeros([1, 1], tl.int64)
    for k in tl.static_range(len(indices)):
        if BY_ROW and BY_COL:
            place = strided(row, shape, index_strides[k][:-1])[:, None] + col[None, :] * index_strides[k][-1]
            known = (row < m)[:, None] & (col < n)[None, :]
        elif BY_ROW:
            place = strided(row, shape, index_strides[k][:-1])[:, None]
            known = (row < m)[:, None]
        else:
            place = col[None, :] * index_strides[k][-1]
            known = (col < n)[None, :]
        index = tl.load(indices[k] + place, mask=known, other=0).to(tl.int64)
        offset += tl.where(index < 0, index + sizes[k], index) * steps[k]
    return offset


@triton.jit
def kernel_copy(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=i < n)
    tl.store(out_ptr + strided(i, shape, out_stride), x.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_put(
    values_ptr,
    indices,
    out_ptr,
    m,
    n,
    col_blocks,
    shape,
    values_stride,
    out_stride,
    index_strides,
    sizes,
    steps,
    ACCUMULATE: tl.constexpr,
    BY_ROW: tl.constexpr,
    BY_COL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    row = (tl.program_id(0) // col_blocks).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % col_blocks).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < m)[:, None] & (col < n)[None, :]
    offset = strided(row, shape, values_stride[:-1])[:, None] + col[None, :] * values_stride[-1]
    x = tl.load(values_ptr + offset, mask=mask).to(out_ptr.dtype.element_ty)
    place = strided(row, shape, out_stride[:-1])[:, None] + col[None, :] * out_stride[-1]
    place += places(indices, row, col, m, n, shape, index_strides, sizes, steps, BY_ROW, BY_COL)
    if ACCUMULATE:
        tl.atomic_add(out_ptr + place, x, mask=mask, sem="relaxed")
    else:
        tl.store(out_ptr + place, x, mask=mask)


@triton.jit
def kernel_count(mask_ptr, counts_ptr, n, shape, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    true = tl.load(mask_ptr + strided(i, shape, stride), mask=i < n, other=0) != 0
    tl.store(counts_ptr + tl.program_id(0), tl.sum(true.to(tl.int64), 0))


@triton.jit
def kernel_starts(counts_ptr, starts_ptr, blocks, BLOCK: tl.constexpr):
    total = tl.zeros([], tl.int64)
    for first in range(0, blocks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        counts = tl.load(counts_ptr + i, mask=i < blocks, other=0)
        tl.store(starts_ptr + i, total + tl.cumsum(counts, 0) - counts, mask=i < blocks)
        total += tl.sum(counts, 0)
    tl.store(starts_ptr + blocks, total)


@triton.jit
def kernel_coordinates(mask_ptr, starts_ptr, out_ptr, n, count, shape, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    true = tl.load(mask_ptr + strided(i, shape, stride), mask=i < n, other=0) != 0
    rank = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(true.to(tl.int64), 0) - 1
    for k in tl.static_range(len(shape) - 1, -1, -1):
        tl.store(out_ptr + k * count + rank, i % shape[k], mask=true)
        i = i // shape[k]


def coordinates(mask):
    """An index tensor for each dimension of a mask: where it is true. How many there are is read from the device."""
    n, shape, stride = mask.numel(), tuple(mask.shape), mask.stride()
    blocks = triton.cdiv(n, 1024)
    counts = torch.empty(blocks, dtype=torch.int64, device=mask.device)
    starts = torch.empty(blocks + 1, dtype=torch.int64, device=mask.device)
    kernel_count[(blocks,)](mask, counts, n, shape, stride, BLOCK=1024)
    kernel_starts[(1,)](counts, starts, blocks, BLOCK=1024)
    count = starts.select(0, blocks).item()
    out = torch.empty((len(shape), count), dtype=torch.int64, device=mask.device)
    kernel_coordinates[(blocks,)](mask, starts, out, n, count, shape, stride, BLOCK=1024)
    return out.unbind(0)


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


def by_integers(size, indices):
    """The index tensors with the first mask turned into integers, a dimension each; then the next. size: of what they
    index, which masks have to have where they stand."""
    masks = [k for k, index in enumerate(indices) if index is not None and index.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return indices
    k = masks[0]
    if size[k : k + indices[k].dim()] != indices[k].shape:
        raise IndexError(f"a mask {tuple(indices[k].shape)} of dimension {k} of {tuple(size)}")
    return by_integers(size, [*indices[:k], *coordinates(indices[k]), *indices[k + 1 :]])


def layout(self, indices):
    """How an indexed tensor is walked through: how many of its dimensions stand before the indices', which are in front
    unless the indices are adjacent; the result's shape; the index tensors; strides in that shape, of self, 0 where
    indices choose, and of each index tensor; and the sizes and strides of the dimensions that they index."""
    size, stride = self.shape, self.stride()
    dims = [d for d, index in enumerate(indices) if index is not None]
    chosen = [indices[d] for d in dims]
    if any(index.shape != chosen[0].shape for index in chosen):
        chosen = torch.broadcast_tensors(*chosen)
    kept = [d for d in range(len(size)) if d not in dims]
    before = dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0
    front, back = kept[:before], kept[before:]
    shape = [size[d] for d in front] + list(chosen[0].shape) + [size[d] for d in back]
    own = [stride[d] for d in front] + [0] * chosen[0].dim() + [stride[d] for d in back]
    strides = [own] + [[0] * before + list(index.stride()) + [0] * len(back) for index in chosen]
    return before, shape, tuple(chosen), strides, tuple(size[d] for d in dims), tuple(stride[d] for d in dims)


def put(out, indices, values, accumulate):
    _, shape, chosen, strides, sizes, steps = layout(out, indices)
    values = values.expand(shape)
    walked, (values_stride, out_stride, *index_strides) = collapse(shape, [values.stride(), *strides])
    m, n = math.prod(walked[:-1]), walked[-1]
    BLOCK_M, BLOCK_N, num_warps = tile(m, n)
    col_blocks = triton.cdiv(n, BLOCK_N)
    kernel_put[(triton.cdiv(m, BLOCK_M) * col_blocks,)](
        values,
        chosen,
        out,
        m,
        n,
        col_blocks,
        walked[:-1],
        values_stride,
        out_stride,
        tuple(index_strides),
        sizes,
        steps,
        ACCUMULATE=accumulate,
        BY_ROW=any(any(s[:-1]) for s in index_strides),
        BY_COL=any(s[-1] for s in index_strides),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )


def wrapper(self, indices, values, accumulate=False, unsafe=False, *, out=None):
    if out is None:
        out = torch.empty_like(self)
    sums = sums_like(out) if accumulate else out
    if sums is not self:
        copy(self, sums)
    put(sums, by_integers(self.shape, indices), values, accumulate)
    if sums is not out:
        copy(sums, out)
    return out
