"""aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) ->
    (Tensor, Tensor, Tensor)

Slices are compared lexicographically and sorted by merging runs. A slice's position in the other run is
located by binary search. The result's size is read back.
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
    """Return 1 if the slice at pointers x is smaller than that at y, -1 if it is larger, and else 0."""
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
    """Merge each pair of neighboring runs in the order of slices.

    Args:
        x_ptr: [n slices, width], read.
        order_ptr: [n] int64, read, or None for the original order.
        out_ptr: [n] int64, written.
        n: Number of slices.
        width: Elements per slice.
        run: Slices per run.
        depth: Binary search steps.
        along: (shape, strides) of x in the dimension of the slices, from `walk`.
        across: (shape, strides) of x in all other dimensions, from `walk`.
        BLOCK: Slices per program instance.
        CHUNK: Elements of a slice that are compared at a time.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    item = item_at(order_ptr, i, i < n)
    lines = line_of(x_ptr, item, along)
    later = i // run % 2
    start = i // run * run + (1 - 2 * later) * run  # start of the other run
    low, high = tl.minimum(start, n), tl.minimum(start + run, n)
    for _ in range(depth):
        middle = (low + high) // 2
        going = (i < n) & (low < high)
        sign = precedes(line_of(x_ptr, item_at(order_ptr, middle, going), along), lines, width, across, going, CHUNK)
        before = (sign > 0) | ((sign == 0) & (later == 1))
        low = tl.where(going & before, middle + 1, low)
        high = tl.where(going & ~before, middle, high)
    tl.store(out_ptr + i + low - tl.minimum(start + later * run, n), item, mask=i < n)


def wrapper(self, dim, sorted=True, return_inverse=False, return_counts=False):
    n, other_dims = self.shape[dim], [d for d in range(self.dim()) if d != dim % self.dim()]
    order, spare = None, [torch.empty(n, dtype=torch.int64, device=self.device) for _ in range(2)]
    run, depth, width = 1, 1, self.numel() // max(n, 1)
    while run < n and width:
        grid = (triton.cdiv(n, 128),)
        steps = walk([self], [dim % self.dim()], False), walk([self], other_dims, False)
        merge_slices_kernel[grid](self, order, spare[0], n, width, run, depth, *steps, BLOCK=128, CHUNK=16, num_warps=4)
        order, spare, run, depth = spare[0], spare[::-1], 2 * run, depth + 1
    return distinct_slices(self, dim, order)
