"""Gather and scatter along one dimension, by an index tensor that has as many dimensions as the other operand."""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.indexing import INDEX_TILE, launch_indexing, launch_last
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import reach

__all__ = ["apply_along", "gather_along", "put_along"]


def _along(self, dim, index):
    """Return the iteration space for gather and scatter along one dimension.

    The result is (self, index, strides, how). Scalars become 1-d. The strides are self's, with 0 along dim,
    and `how` is the argument for `launch_indexing`. Raises RuntimeError if the index does not fit.
    """
    x, index = [t if t.dim() else t.unsqueeze(0) for t in (self, index)]
    dim = dim % x.dim()
    if index.dim() != x.dim() or any([index.shape[d] > n for d, n in enumerate(x.shape) if d != dim]):
        raise RuntimeError(f"index {tuple(index.shape)} does not fit {tuple(x.shape)} along dimension {dim}")
    self_strides = [0 if d == dim else x.stride(d) for d in range(x.dim())]
    return x, index, self_strides, ([index], [index.stride()], [x.shape[dim]], [x.stride(dim)])


def gather_along(self, dim, index):
    """Return self's elements at these indices along dim, in a new tensor."""
    out = torch.empty(index.shape, dtype=self.dtype, device=self.device)
    if out.numel():
        x, index, self_strides, how = _along(self, dim, index)
        target = out.view(index.shape)
        launch_indexing("gather", x, self_strides, target, target.stride(), None, index.shape, how, INDEX_TILE)
    return out


def _expect_values(values, index):
    if values.dim() != index.dim() or any([m > n for m, n in zip(index.shape, values.shape, strict=True)]):
        raise RuntimeError(f"index {tuple(index.shape)} does not fit source {tuple(values.shape)}")


def _mostly_written(self, out, written):
    """Return True if so much of a dense `out` is written that one more pass over all of it pays off."""
    return self.numel() >= SMALL_TENSOR and 4 * written >= self.numel() and self.is_contiguous() and out.is_contiguous()


def apply_along(mode, out, dim, index, values, opmath=None):
    """Combine values with the elements of `out` at these indices along dim.

    `values` covers the index or has one element. `mode` is "scatter" (write), "add" (by atomics), or "max",
    "min" or "multiply" for integers, which may hold the bits of dtype `opmath`.
    """
    if not index.numel():
        return
    x, index, self_strides, how = _along(out, dim, index)
    values = values if values.dim() else values.expand(index.shape)
    _expect_values(values, index)
    # If all values are one element, the order in which they are written does not matter.
    if mode == "scatter" and any(values.stride()):
        launch_last(values, values.stride(), x, self_strides, index.shape, how)
        return
    launch_indexing(mode, values, values.stride(), x, self_strides, None, index.shape, how, INDEX_TILE, opmath)


@triton.jit
def claimed_kernel(self_ptr, values_ptr, claims_ptr, out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Store to each element of `out` the value that claims it, or self's element if no value does.

    Args:
        self_ptr: [n], dense, read.
        values_ptr: Values, read at the claimed offsets.
        claims_ptr: [n], dense, read: offsets in the values, or -1.
        out_ptr: [n], dense, written.
        n: Number of elements.
        WIDE: True to use 64-bit offsets.
        BLOCK: Elements per program.
    """
    i = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK + tl.arange(0, BLOCK)
    claim = tl.load(claims_ptr + i, mask=i < n, other=-1)
    x = tl.load(self_ptr + i, mask=(i < n) & (claim < 0))
    value = tl.load(values_ptr + claim, mask=claim >= 0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + i, tl.where(claim < 0, x, value), mask=i < n)


def claimed(self, values, shape, how, out):
    """Fill `out` with the last value for each element, or with self for elements that no value targets.

    `out` is dense like self. It is written in memory order, so only the claims are scattered. `shape` and
    `how` are as in `launch_indexing`, with self's strides in front.
    """
    self_strides, *chosen = how
    dtype = torch.int32 if reach(shape, [values.stride()]) <= INT32_MAX else torch.int64
    claims = torch.empty(self.shape, dtype=dtype, device=self.device)
    elementwise(identity, -1, common=dtype, out=claims)
    launch_indexing("claim", values, values.stride(), claims, self_strides, None, shape, chosen, INDEX_TILE)
    n = self.numel()
    BLOCK = 1024
    wide = n + BLOCK > INT32_MAX
    claimed_kernel[(triton.cdiv(n, BLOCK),)](self, values, claims, out, n, WIDE=wide, BLOCK=BLOCK, num_warps=4)
    return out


def put_along(self, dim, index, values, accumulate, out=None):
    """Return a copy of self, or `out`, with values written or added at these indices along dim.

    Sums accumulate as in `put`.
    """
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device) if out is None else out
    sums = out
    if not accumulate and out is not self and any(values.stride()) and _mostly_written(self, out, index.numel()):
        _, index, self_strides, how = _along(self, dim, index)
        _expect_values(values, index)
        return claimed(self, values, index.shape, (self_strides, *how), out)
    if accumulate and out.dtype not in (torch.float32, torch.float64, torch.int32, torch.int64):
        wide = torch.float32 if out.is_floating_point() else torch.int32
        sums = torch.empty(out.shape, dtype=wide, device=out.device)
    if sums is not self:
        elementwise(identity, self, common=sums.dtype, out=sums)
    apply_along("add" if accumulate else "scatter", sums, dim, index, values)
    return out if sums is out else elementwise(identity, sums, out=out)
