"""Index maps: what index tensors choose of a tensor is read (gather) or written (scatter).

It is walked through in tiles of rows and columns; dimensions are merged where all operands' strides allow, so that only
rows are taken apart by division. An index that is the same for all rows, or columns, of a tile is loaded once.
Where an index is out of range nothing is written, and 0 read.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.compaction import coordinates
from blocks.elementwise import elementwise
from blocks.offsets import empty_result, integer, integer_value, integers, merge, reach, small_tile, strided
from blocks.types import compute_types, number_argument, number_value


@triton.jit
def tile_offset(row, col, shape, stride, PLAIN: tl.constexpr):
    """[M, N] offsets in a tensor; shape: of the rows alone."""
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
    """What the index tensors add to the offset in the indexed tensor, and whether all are in range; broadcast over what
    they do not depend on."""
    offset = tl.zeros([1, 1], tl.int64)
    valid = offset == 0
    for k in tl.static_range(len(indices)):
        if BY_ROW and BY_COL:
            place = tile_offset(row, col, shape, strides[k], PLAIN)
            known = (row < m)[:, None] & (col < n)[None, :]
        elif BY_ROW:
            place = strided(row, shape, strides[k][:-1], False, PLAIN)[:, None]
            known = (row < m)[:, None]
        else:
            place = (col * integer_value(strides[k][-1], PLAIN))[None, :]
            known = (col < n)[None, :]
        index = tl.load(indices[k] + place, mask=known, other=0).to(tl.int64)
        size = integer_value(sizes[k], PLAIN)
        index = tl.where(index < 0, index + size, index)
        valid &= (index >= 0) & (index < size)
        offset += index * integer_value(steps[k], PLAIN)
    return offset, valid


@triton.jit
def atomic_multiply(out_ptr, place, x, mask, OPMATH: tl.constexpr):
    """out_ptr[place] *= x where the mask is true, of values of OPMATH, the bits of which are held by integers."""
    x = x.to(OPMATH, bitcast=True)
    todo = mask & (place >= 0)
    places = out_ptr + tl.where(todo, place, 0)
    known = tl.zeros(todo.shape, out_ptr.dtype.element_ty)
    while tl.max(tl.max(todo.to(tl.int32), 1), 0) > 0:
        product = (known.to(OPMATH, bitcast=True) * x).to(known.dtype, bitcast=True)
        found = tl.atomic_cas(places, known, tl.where(todo, product, known), sem="relaxed")
        todo = todo & (found != known)
        known = found


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
    """MODE gather: the indices choose of the source; scatter, add: of the result, where the source is multiplied by
    alpha, if there is one, and added by atomics. claim, last: of several elements for one place the last in the source
    is written, found in `alpha`, where before each leaves its offset."""
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


def gather(self, indices, out=None, elements=2048):
    """self[indices], in `out` or in a new tensor laid out as ATen's. indices: None or integers for each dimension.

    elements: of a program.
    """
    before, shape, chosen, strides, sizes, steps = _layout(self, indices)
    if out is None and _row_major(self) and all([_row_major(index) for index in chosen]):
        out = torch.empty(shape, dtype=self.dtype, device=self.device)
    elif out is None:
        after = len(shape) - before - chosen[0].dim()
        views = [index.view([1] * before + list(index.shape) + [1] * after).expand(shape) for index in chosen]
        out = empty_result([self.as_strided(shape, strides[0]), *views], self.dtype)
    own, *index_strides = strides
    _launch_indexing(
        "gather", self, own, out, out.stride(), None, shape, (chosen, index_strides, sizes, steps), elements
    )
    return out


def scatter(out, indices, values, accumulate, alpha=None):
    """out[indices] = values, or out[indices] += alpha * values by atomics, which add up in 32 bits or more."""
    if out.numel() == 0:
        return  # ATen looks at no index then, which may be of more than there is
    out = out.unsqueeze(0) if out.dim() == 0 else out
    _, shape, chosen, (own, *index_strides), sizes, steps = _layout(out, indices)
    values = values.expand(shape)
    mode = "add" if accumulate else "scatter"
    alpha = None if alpha is None else number_argument(alpha, out.dtype)
    _launch_indexing(mode, values, values.stride(), out, own, alpha, shape, (chosen, index_strides, sizes, steps), 2048)


def _launch_indexing(mode, source, source_stride, out, out_stride, alpha, shape, how, elements, opmath=None):
    """alpha: as the kernel takes it. how: the index tensors, their strides, and the sizes and strides of the dimensions
    that they index."""
    chosen, index_strides, sizes, steps = how
    walked, strides = merge(shape, [source_stride, out_stride, *index_strides])
    walked = walked or (math.prod(shape),)
    source_stride, out_stride, *index_strides = strides
    m, n = math.prod(walked[:-1]), walked[-1]
    BLOCK_M, BLOCK_N = small_tile(n, 1024)
    if m * n >= 4096:
        BLOCK_N = min(triton.next_power_of_2(n), 1024)
        BLOCK_M = min(triton.next_power_of_2(m), elements // BLOCK_N)
    PLAIN = m * n < 65536
    indexing_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)](
        source,
        tuple(chosen),
        out,
        alpha,
        integer(m, PLAIN),
        integer(n, PLAIN),
        integers(walked[:-1], PLAIN),
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


def _launch_last(source, source_stride, out, out_stride, shape, how):
    """Scatter, where of several elements for one place the last is written, as ATen does on a CPU."""
    dtype = torch.int32 if reach(shape, [source_stride]) < 2147483648 else torch.int64
    claims = torch.empty_strided(out.shape, out.stride(), dtype=dtype, device=out.device)
    elementwise(identity, -1, common=dtype, out=claims)
    _launch_indexing("claim", source, source_stride, claims, out_stride, None, shape, how, 2048)
    _launch_indexing("last", source, source_stride, out, out_stride, claims, shape, how, 2048)


@triton.jit
def claimed_kernel(self_ptr, values_ptr, claims_ptr, out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Each element of `out`: of the values what claims it, or else of self."""
    i = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK + tl.arange(0, BLOCK)
    claim = tl.load(claims_ptr + i, mask=i < n, other=-1)
    x = tl.load(self_ptr + i, mask=(i < n) & (claim < 0))
    value = tl.load(values_ptr + claim, mask=claim >= 0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + i, tl.where(claim < 0, x, value), mask=i < n)


def claimed(self, values, shape, how, out):
    """`out`, dense as self, of the last of the values for each place and of self where there is none; what is written
    is read in the order of `out`, so that nothing is stored far apart twice. shape, how: as `_launch_indexing` takes
    them, how with self's strides in front."""
    own, *chosen = how
    dtype = torch.int32 if reach(shape, [values.stride()]) < 2147483648 else torch.int64
    claims = torch.empty(self.shape, dtype=dtype, device=self.device)
    elementwise(identity, -1, common=dtype, out=claims)
    _launch_indexing("claim", values, values.stride(), claims, own, None, shape, chosen, 2048)
    n = self.numel()
    wide = n + 1024 > 2147483647
    claimed_kernel[(triton.cdiv(n, 1024),)](self, values, claims, out, n, WIDE=wide, BLOCK=1024, num_warps=4)
    return out


def put_last(self, indices, values, out):
    """`out`, a copy of self into which values are written; of several for one place the last."""
    if out is not self:
        elementwise(identity, self, common=out.dtype, out=out)
    if out.numel() and values.numel():
        x = out.unsqueeze(0) if out.dim() == 0 else out
        _, shape, chosen, (own, *index_strides), sizes, steps = _layout(x, indices)
        values = values.expand(shape)
        _launch_last(values, values.stride(), x, own, shape, (chosen, index_strides, sizes, steps))
    return out


def _layout(self, indices):
    """How an indexed tensor is walked through: how many of its dimensions stand before the indices', which are in front
    unless the indices are adjacent; the result's shape; the index tensors; strides in that shape, of self, 0 where
    indices choose, and of each index tensor; and the sizes and strides of the dimensions that they index."""
    size, stride = self.shape, self.stride()
    dims = [d for d, index in enumerate(indices) if index is not None]
    chosen = [indices[d] for d in dims]
    if any([index.shape != chosen[0].shape for index in chosen]):
        chosen = torch.broadcast_tensors(*chosen)
    kept = [d for d in range(len(size)) if d not in dims]
    if not dims:
        raise NotImplementedError("an index in which there is no tensor, or only a mask without dimensions")
    before = dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0
    front, back = kept[:before], kept[before:]
    shape = [size[d] for d in front] + list(chosen[0].shape) + [size[d] for d in back]
    own = [stride[d] for d in front] + [0] * chosen[0].dim() + [stride[d] for d in back]
    strides = [own] + [[0] * before + list(index.stride()) + [0] * len(back) for index in chosen]
    return before, shape, chosen, strides, [size[d] for d in dims], [stride[d] for d in dims]


def _row_major(t):
    """Whether all strides are those of a new tensor, also in dimensions of size 1, which is_contiguous passes over."""
    step = 1
    for size, stride in zip(reversed(t.shape), reversed(t.stride()), strict=True):
        if stride != step:
            return False
        step *= max(size, 1)
    return True


def by_integers(size, indices):
    """The index tensors with masks turned into integers, one for each dimension of a mask. size: of what they index.

    Raises IndexError for a mask that does not have the size where it stands.
    """
    masks = [k for k, index in enumerate(indices) if index is not None and index.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return indices
    k = masks[0]
    if size[k : k + indices[k].dim()] != indices[k].shape:
        raise IndexError(f"a mask {tuple(indices[k].shape)} of dimension {k} of {tuple(size)}")
    return by_integers(size, [*indices[:k], *coordinates(indices[k], 0), *indices[k + 1 :]])


def put(self, indices, values, accumulate, alpha=None, out=None):
    """A copy of self, or `out`, into which values are scattered; what is narrower than 32 bits is added up in 32."""
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


def _along(self, dim, index):
    """How an index of gather and scatter chooses: self and it with dimensions, self's strides, 0 along dim, and what
    `_launch_indexing` is to know."""
    x, index = [t if t.dim() else t.unsqueeze(0) for t in (self, index)]
    dim = dim % x.dim()
    if index.dim() != x.dim() or any([index.shape[d] > n for d, n in enumerate(x.shape) if d != dim]):
        raise RuntimeError(f"an index {tuple(index.shape)} along dimension {dim} of {tuple(x.shape)}")
    own = [0 if d == dim else x.stride(d) for d in range(x.dim())]
    return x, index, own, ([index], [index.stride()], [x.shape[dim]], [x.stride(dim)])


def gather_along(self, dim, index):
    """self, in a new tensor, at these indices along dim."""
    out = torch.empty(index.shape, dtype=self.dtype, device=self.device)
    if out.numel():
        x, index, own, how = _along(self, dim, index)
        to = out.view(index.shape)
        _launch_indexing("gather", x, own, to, to.stride(), None, index.shape, how, 2048)
    return out


def _expect_values(values, index):
    if values.dim() != index.dim() or any([m > n for m, n in zip(index.shape, values.shape, strict=True)]):
        raise RuntimeError(f"an index {tuple(index.shape)} of values {tuple(values.shape)}")


def _mostly_written(self, out, written):
    """Whether so much is written into a dense `out` that it pays to walk through all of it once more."""
    return self.numel() >= 65536 and 4 * written >= self.numel() and self.is_contiguous() and out.is_contiguous()


def apply_along(mode, out, dim, index, values, opmath=None):
    """Values, a tensor that reaches as far as the index or of one element, are written into `out` at these indices
    along dim; or added by atomics; or "max", "min", "multiply" of integers, which may hold the bits of `opmath`."""
    if not index.numel():
        return
    x, index, own, how = _along(out, dim, index)
    values = values if values.dim() else values.expand(index.shape)
    _expect_values(values, index)
    if mode == "scatter" and any(values.stride()):
        _launch_last(values, values.stride(), x, own, index.shape, how)
        return
    _launch_indexing(mode, values, values.stride(), x, own, None, index.shape, how, 2048, opmath)


def put_along(self, dim, index, values, accumulate, out=None):
    """A copy of self, or `out`, into which values are written at these indices along dim, or added as by `put`."""
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device) if out is None else out
    sums = out
    if not accumulate and out is not self and any(values.stride()) and _mostly_written(self, out, index.numel()):
        _, index, own, how = _along(self, dim, index)
        _expect_values(values, index)
        return claimed(self, values, index.shape, (own, *how), out)
    if accumulate and out.dtype not in (torch.float32, torch.float64, torch.int32, torch.int64):
        wide = torch.float32 if out.is_floating_point() else torch.int32
        sums = torch.empty(out.shape, dtype=wide, device=out.device)
    if sums is not self:
        elementwise(identity, self, common=sums.dtype, out=sums)
    apply_along("add" if accumulate else "scatter", sums, dim, index, values)
    return out if sums is out else elementwise(identity, sums, out=out)


@triton.jit
def clamp_index(i, size):
    return tl.maximum(tl.minimum(i, size - 1), -size)


def clamped_indices(size, indices):
    """Index tensors, of which what is out of range is the nearest index that is not."""
    return [
        i if i is None else elementwise(clamp_index, i, numbers=(n,), common=torch.int64)
        for i, n in zip(indices, size, strict=False)
    ]
