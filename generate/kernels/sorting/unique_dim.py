"""aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) ->
    (Tensor, Tensor, Tensor)

Slices are sorted, by their first elements that are less or larger than the other's, in runs that are merged: the place
of one in the other run is found by a binary search. How many there are is read back.
"""

import torch
import triton
import triton.language as tl
from blocks.distinct import distinct_slices, item_at, line_of
from blocks.offsets import strided, walk

OVERLOADS = ("aten::unique_dim",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def precedes(x, y, width, across, mask, CHUNK: tl.constexpr):
    """1 where the slice at pointers x is the lesser one, -1 where it is the larger one, 0 where neither."""
    sign = tl.zeros([mask.shape[0]], tl.int32)
    for start in range(0, width, CHUNK):
        cols = start + tl.arange(0, CHUNK)
        inside = (mask & (sign == 0))[:, None] & (cols < width)[None, :]
        offset = strided(cols.to(tl.int64), across[0], across[1][0], False, False)[None, :]
        a, b = tl.load(x + offset, mask=inside, other=0), tl.load(y + offset, mask=inside, other=0)
        signs = (a < b).to(tl.int32) - (a > b).to(tl.int32)
        first = tl.min(tl.where(signs != 0, cols[None, :], start + CHUNK), 1)
        sign += tl.sum(tl.where(cols[None, :] == first[:, None], signs, 0), 1)
    return sign


@triton.jit
def merge_slices_kernel(
    x_ptr, order_ptr, out_ptr, n, width, run, depth, along, across, BLOCK: tl.constexpr, CHUNK: tl.constexpr
):
    """The order of slices in which each pair of neighbouring runs is one."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    item = item_at(order_ptr, i, i < n)
    here = line_of(x_ptr, item, along)
    later = i // run % 2
    start = i // run * run + (1 - 2 * later) * run  # of the other run
    low, high = tl.minimum(start, n), tl.minimum(start + run, n)
    for _ in range(depth):
        middle = (low + high) // 2
        going = (i < n) & (low < high)
        sign = precedes(line_of(x_ptr, item_at(order_ptr, middle, going), along), here, width, across, going, CHUNK)
        before = (sign > 0) | ((sign == 0) & (later == 1))
        low = tl.where(going & before, middle + 1, low)
        high = tl.where(going & ~before, middle, high)
    tl.store(out_ptr + i + low - tl.minimum(start + later * run, n), item, mask=i < n)


def wrapper(self, dim, sorted=True, return_inverse=False, return_counts=False):
    n, others = self.shape[dim], [d for d in range(self.dim()) if d != dim % self.dim()]
    order, spare = None, [torch.empty(n, dtype=torch.int64, device=self.device) for _ in range(2)]
    run, depth, width = 1, 1, self.numel() // max(n, 1)
    while run < n and width:
        grid = (triton.cdiv(n, 128),)
        steps = walk([self], [dim % self.dim()], False), walk([self], others, False)
        merge_slices_kernel[grid](self, order, spare[0], n, width, run, depth, *steps, BLOCK=128, CHUNK=16, num_warps=4)
        order, spare, run, depth = spare[0], spare[::-1], 2 * run, depth + 1
    return distinct_slices(self, dim, order)
