"""Index maps: gather elements of a tensor at index tensors, or scatter values to them.

The kernel works on tiles of rows and columns. Dimensions are merged if all operands' strides allow it, so
only row numbers are decomposed by division. An index that is the same for all rows, or for all columns, of a
tile is loaded once. An index that is out of bounds reads 0 and writes nothing.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.compaction import coordinates
from blocks.elementwise import SHORT_LAUNCH, elementwise
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import empty_result, integer, integer_value, integers, merge, reach, small_tile, strided
from blocks.types import compute_types, number_argument, number_value

INDEX_TILE = 2048  # elements per program, 8 per thread with 8 warps


@triton.jit
def tile_offset(row, col, shape, stride, PLAIN: tl.constexpr):
    """Return a tile's [M, N] offsets in a tensor; `shape` covers the row dimensions only."""
    return strided(row, shape, stride[:-1], False, PLAIN)[:, None] + (col * integer_value(stride[-1], PLAIN))[None, :]


@triton.jit
def chosen_offset(
    indices,
    row,
    col,
    m,
    n,
    shape,
    strides,
    sizes,
    steps,
    BY_ROW: tl.constexpr,
    BY_COL: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Return the offset that the index tensors add, and a mask that is true if they are all in bounds.

    Both values are broadcast over the tile dimensions that no index depends on. A negative index counts from
    the end.
    """
    offset = tl.zeros([1, 1], tl.int64)
    valid = offset == 0
    for k in tl.static_range(len(indices)):
        if BY_ROW and BY_COL:
            index_offset = tile_offset(row, col, shape, strides[k], PLAIN)
            known = (row < m)[:, None] & (col < n)[None, :]
        elif BY_ROW:
            index_offset = strided(row, shape, strides[k][:-1], False, PLAIN)[:, None]
            known = (row < m)[:, None]
        else:
            index_offset = (col * integer_value(strides[k][-1], PLAIN))[None, :]
            known = (col < n)[None, :]
        index = tl.load(indices[k] + index_offset, mask=known, other=0).to(tl.int64)
        size = integer_value(sizes[k], PLAIN)
        index = tl.where(index < 0, index + size, index)
        valid &= (index >= 0) & (index < size)
        offset += index * integer_value(steps[k], PLAIN)
    return offset, valid


@triton.jit
def atomic_multiply(out_ptr, offset, x, mask, OPMATH: tl.constexpr):
    """Multiply out_ptr[offset] by x where the mask is true.

    Integers hold the bits of values in dtype OPMATH.
    """
    x = x.to(OPMATH, bitcast=True)
    pending = mask & (offset >= 0)
    pointers = out_ptr + tl.where(pending, offset, 0)
    expected = tl.zeros(pending.shape, out_ptr.dtype.element_ty)
    # Each round retries the lanes whose element another lane or program has changed since it was read.
    while tl.max(tl.max(pending.to(tl.int32), 1), 0) > 0:
        product = (expected.to(OPMATH, bitcast=True) * x).to(expected.dtype, bitcast=True)
        current = tl.atomic_cas(pointers, expected, tl.where(pending, product, expected), sem="relaxed")
        pending = pending & (current != expected)
        expected = current


@triton.jit
def indexing_kernel(
    source_ptr,
    indices,
    out_ptr,
    alpha,
    m,
    n,
    shape,
    source_stride,
    out_stride,
    index_strides,
    sizes,
    steps,
    MODE: tl.constexpr,
    OPMATH: tl.constexpr,
    BY_ROW: tl.constexpr,
    BY_COL: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Gather from the source, or scatter it to the output, one [BLOCK_M, BLOCK_N] tile per program.

    MODE "gather" applies the indices to the source, and all other modes apply them to the output. "scatter"
    stores, and "add", "max", "min" and "multiply" use atomics. "claim" leaves the largest source offset at
    each destination. "last" then writes only the elements whose offset is claimed, so the last of several
    elements for one destination wins.

    Args:
        source_ptr: Strided tensor, read; if MODE is "gather", it is indexed, and its stride is 0 along index
            dimensions.
        indices: Tuple of pointers to index tensors, read with `index_strides`.
        out_ptr: Strided tensor, written; in all modes but "gather" it is indexed, and its stride is 0 along
            index dimensions.
        alpha: Factor for mode "add", or None; in mode "last" the pointer to the claims, read.
        m: Rows of the iteration space.
        n: Columns of the iteration space.
        shape: Sizes of the row dimensions.
        source_stride: Strides of the source in the iteration space, in elements; the last one is for columns.
        out_stride: Strides of the output in the iteration space.
        index_strides: Strides of each index tensor in the iteration space.
        sizes: Size along each indexed dimension.
        steps: Stride along each indexed dimension, in elements.
        MODE: "gather", "scatter", "add", "max", "min", "multiply", "claim" or "last".
        OPMATH: Type of alpha in mode "add"; in mode "multiply" the type whose bits the integers hold.
        BY_ROW: True if an index depends on the row.
        BY_COL: True if an index depends on the column.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK_M: Rows per tile.
        BLOCK_N: Columns per tile.
    """
    m, n = integer_value(m, PLAIN), integer_value(n, PLAIN)
    across = tl.cdiv(n, BLOCK_N)
    row = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < m)[:, None] & (col < n)[None, :]
    read = tile_offset(row, col, shape, source_stride, PLAIN)
    write = tile_offset(row, col, shape, out_stride, PLAIN)
    chosen, valid = chosen_offset(indices, row, col, m, n, shape, index_strides, sizes, steps, BY_ROW, BY_COL, PLAIN)
    if MODE == "gather":
        tl.store(out_ptr + write, tl.load(source_ptr + (read + chosen), mask=mask & valid, other=0), mask=mask)
    elif MODE == "claim":
        tl.atomic_max(out_ptr + (write + chosen), read.to(out_ptr.dtype.element_ty), mask=mask & valid, sem="relaxed")
    elif MODE == "last":
        # All positions that match a claim read the same source element, so the order of these stores does not matter.
        last = tl.load(alpha + (write + chosen), mask=mask & valid, other=-1) == read
        x = tl.load(source_ptr + read, mask=mask & valid & last).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + (write + chosen), x, mask=mask & valid & last)
    else:
        x = tl.load(source_ptr + read, mask=mask).to(out_ptr.dtype.element_ty)
        if MODE == "add":
            if alpha is not None:
                x = x * number_value(alpha, OPMATH)
            tl.atomic_add(out_ptr + (write + chosen), x, mask=mask & valid, sem="relaxed")
        elif MODE == "max":
            tl.atomic_max(out_ptr + (write + chosen), x, mask=mask & valid, sem="relaxed")
        elif MODE == "min":
            tl.atomic_min(out_ptr + (write + chosen), x, mask=mask & valid, sem="relaxed")
        elif MODE == "multiply":
            atomic_multiply(out_ptr, write + chosen, x, mask & valid, OPMATH)
        else:
            tl.store(out_ptr + (write + chosen), x, mask=mask & valid)


def gather(self, indices, out=None, elements=INDEX_TILE):
    """Return self[indices], in `out` or in a new tensor with ATen's memory layout.

    Args:
        self: Tensor to read.
        indices: One entry per dimension: an integer tensor, or None.
        out: Result tensor, or None to allocate one.
        elements: Elements per program.
    """
    before, shape, chosen, strides, sizes, steps = _layout(self, indices)
    if out is None and _row_major(self) and all([_row_major(index) for index in chosen]):
        out = torch.empty(shape, dtype=self.dtype, device=self.device)
    elif out is None:
        after = len(shape) - before - chosen[0].dim()
        views = [index.view([1] * before + list(index.shape) + [1] * after).expand(shape) for index in chosen]
        out = empty_result([self.as_strided(shape, strides[0]), *views], self.dtype)
    self_strides, *index_strides = strides
    launch_indexing(
        "gather", self, self_strides, out, out.stride(), None, shape, (chosen, index_strides, sizes, steps), elements
    )
    return out


def scatter(out, indices, values, accumulate, alpha=None):
    """Write out[indices] = values, or add alpha * values to out[indices] by atomics.

    Atomics need elements of 32 bits or more.
    """
    if out.numel() == 0:
        return  # ATen then reads no index, so an index may be out of bounds
    out = out.unsqueeze(0) if out.dim() == 0 else out
    _, shape, chosen, (self_strides, *index_strides), sizes, steps = _layout(out, indices)
    values = values.expand(shape)
    mode = "add" if accumulate else "scatter"
    alpha = None if alpha is None else number_argument(alpha, out.dtype)
    launch_indexing(
        mode,
        values,
        values.stride(),
        out,
        self_strides,
        alpha,
        shape,
        (chosen, index_strides, sizes, steps),
        INDEX_TILE,
    )


def launch_indexing(mode, source, source_stride, out, out_stride, alpha, shape, how, elements, opmath=None):
    """Launch `indexing_kernel` over `shape`.

    `alpha` has the form that the kernel takes. `how` holds the index tensors and their strides, then the
    indexed dimensions' sizes and strides.
    """
    chosen, index_strides, sizes, steps = how
    merged, strides = merge(shape, [source_stride, out_stride, *index_strides])
    merged = merged or (math.prod(shape),)
    source_stride, out_stride, *index_strides = strides
    m, n = math.prod(merged[:-1]), merged[-1]
    BLOCK_M, BLOCK_N = small_tile(n, 1024)
    if m * n >= SHORT_LAUNCH:
        BLOCK_N = min(triton.next_power_of_2(n), 1024)
        BLOCK_M = min(triton.next_power_of_2(m), elements // BLOCK_N)
    PLAIN = m * n < SMALL_TENSOR
    indexing_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)](
        source,
        tuple(chosen),
        out,
        alpha,
        integer(m, PLAIN),
        integer(n, PLAIN),
        integers(merged[:-1], PLAIN),
        integers(source_stride, PLAIN),
        integers(out_stride, PLAIN),
        tuple([integers(s, PLAIN) for s in index_strides]),
        integers(sizes, PLAIN),
        integers(steps, PLAIN),
        MODE=mode,
        OPMATH=compute_types(opmath or out.dtype)[1],
        BY_ROW=any([any(s[:-1]) for s in index_strides]),
        BY_COL=any([s[-1] for s in index_strides]),
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(1, min(BLOCK_M * BLOCK_N // 256, 8)),
    )


def launch_last(source, source_stride, out, out_stride, shape, how):
    """Scatter so that the last of several elements for one destination wins, as in ATen on the CPU."""
    dtype = torch.int32 if reach(shape, [source_stride]) <= INT32_MAX else torch.int64
    claims = torch.empty_strided(out.shape, out.stride(), dtype=dtype, device=out.device)
    elementwise(identity, -1, common=dtype, out=claims)
    launch_indexing("claim", source, source_stride, claims, out_stride, None, shape, how, INDEX_TILE)
    launch_indexing("last", source, source_stride, out, out_stride, claims, shape, how, INDEX_TILE)


def put_last(self, indices, values, out):
    """Copy self to `out` and write values into it; the last of several values for one element wins."""
    if out is not self:
        elementwise(identity, self, common=out.dtype, out=out)
    if out.numel() and values.numel():
        x = out.unsqueeze(0) if out.dim() == 0 else out
        _, shape, chosen, (self_strides, *index_strides), sizes, steps = _layout(x, indices)
        values = values.expand(shape)
        launch_last(values, values.stride(), x, self_strides, shape, (chosen, index_strides, sizes, steps))
    return out


def _layout(self, indices):
    """Return the iteration space of an indexed tensor.

    The result is (before, shape, index tensors, strides, sizes, steps):

    - before: dimension count in front of the index dimensions, which come first unless the indices are
      adjacent.
    - shape: the result's shape.
    - strides: strides in that shape, for self (0 along index dimensions) and for each index tensor.
    - sizes, steps: sizes and strides along the indexed dimensions.

    Raises NotImplementedError if there is no index tensor.
    """
    size, stride = self.shape, self.stride()
    dims = [d for d, index in enumerate(indices) if index is not None]
    chosen = [indices[d] for d in dims]
    if any([index.shape != chosen[0].shape for index in chosen]):
        chosen = torch.broadcast_tensors(*chosen)
    remaining = [d for d in range(len(size)) if d not in dims]
    if not dims:
        raise NotImplementedError(
            "indices without a tensor, or with only a mask that has no dimensions, are not supported"
        )
    before = dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0
    front, back = remaining[:before], remaining[before:]
    shape = [size[d] for d in front] + list(chosen[0].shape) + [size[d] for d in back]
    self_strides = [stride[d] for d in front] + [0] * chosen[0].dim() + [stride[d] for d in back]
    strides = [self_strides] + [[0] * before + list(index.stride()) + [0] * len(back) for index in chosen]
    return before, shape, chosen, strides, [size[d] for d in dims], [stride[d] for d in dims]


def _row_major(t):
    """Return True if all strides equal those of a new tensor.

    Unlike is_contiguous, this includes dimensions with size 1.
    """
    step = 1
    for size, stride in zip(reversed(t.shape), reversed(t.stride()), strict=True):
        if stride != step:
            return False
        step *= max(size, 1)
    return True


def by_integers(size, indices):
    """Replace each mask among the indices by integer index tensors, one per mask dimension.

    Args:
        size: The indexed tensor's shape.
        indices: One entry per dimension: an index tensor or None; a mask covers several dimensions.

    Raises:
        IndexError: If a mask differs in shape from the dimensions that it covers.
    """
    masks = [k for k, index in enumerate(indices) if index is not None and index.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return indices
    k = masks[0]
    if size[k : k + indices[k].dim()] != indices[k].shape:
        raise IndexError(f"mask {tuple(indices[k].shape)} does not match {tuple(size)} at dimension {k}")
    return by_integers(size, [*indices[:k], *coordinates(indices[k], 0), *indices[k + 1 :]])


def put(self, indices, values, accumulate, alpha=None, out=None):
    """Return a copy of self, or `out`, into which values are scattered.

    Sums of dtypes narrower than 32 bits accumulate in 32 bits.
    """
    out = torch.empty_like(self) if out is None else out
    sums = out
    if accumulate and out.dtype not in (torch.float32, torch.float64, torch.int32, torch.int64):
        sums = torch.empty(
            out.shape, dtype=torch.float32 if out.is_floating_point() else torch.int32, device=out.device
        )
    if sums is not self:
        elementwise(identity, self, common=sums.dtype, out=sums)
    scatter(sums, indices, values, accumulate, alpha)
    return out if sums is out else elementwise(identity, sums, out=out)


@triton.jit
def clamp_index(i, size):
    return tl.maximum(tl.minimum(i, size - 1), -size)


def clamped_indices(size, indices):
    """Return index tensors in which each index that is out of bounds is clamped to the nearest valid one."""
    return [
        i if i is None else elementwise(clamp_index, i, numbers=(n,), common=torch.int64)
        for i, n in zip(indices, size, strict=False)
    ]
