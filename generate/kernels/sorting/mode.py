"""aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)

The result is the smallest among the most frequent elements. Each NaN is distinct. Rows are sorted, and a
binary search counts the equal elements that follow each position.
"""

import torch
import triton
import triton.language as tl
from blocks.ranked import pick_ranked, row_results
from blocks.reduction import index_alone, reduce, with_index
from blocks.sorting import sorted_keys

OVERLOADS = ("aten::mode",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def run_lengths_kernel(keys_ptr, lengths_ptr, size, n, depth, FLOATING: tl.constexpr, BLOCK: tl.constexpr):
    """Count the equal elements from each position on, in sorted rows with n elements.

    Args:
        keys_ptr: [rows, n] sorted keys, read.
        lengths_ptr: [rows, n] int64, written.
        size: rows * n.
        n: Elements per row.
        depth: Binary search steps.
        FLOATING: The largest key belongs to NaN, whose length is 1.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys_ptr + i, mask=i < size, other=0)
    col, row = i % n, i // n
    low, high = col, tl.zeros_like(col) + n
    for _ in range(depth):
        middle = (low + high) // 2
        going = (i < size) & (low < high)
        equal = tl.load(keys_ptr + row * n + middle, mask=going, other=0) <= key
        low = tl.where(going & equal, middle + 1, low)
        high = tl.where(going & ~equal, middle, high)
    length = low - col
    if FLOATING:
        NAN: tl.constexpr = 0x7FFFFFFFFFFFFFFF if key.dtype.primitive_bitwidth == 64 else 0x7FFFFFFF
        length = tl.where(key == NAN, 1, length)
    tl.store(lengths_ptr + i, length, mask=i < size)


def wrapper(self, dim=-1, keepdim=False):
    outs = row_results(self, dim, keepdim)
    if outs[0].numel():
        dims = [dim % self.dim()] if self.dim() else []
        keys, order = sorted_keys(self, dims)
        size, n = keys.numel(), keys.shape[1]
        lengths = torch.empty(keys.shape, dtype=torch.int64, device=self.device)
        depth = len([k for k in range(63) if n >> k])
        grid = (triton.cdiv(size, 512),)
        run_lengths_kernel[grid](keys, lengths, size, n, depth, FLOATING=self.dtype.is_floating_point, BLOCK=512)
        longest = reduce("argmax", [lengths], [1], dtype=torch.int64, map=with_index, indexed=True, finish=index_alone)
        pick_ranked("given", self, dims, (keys, order), outs, places=longest)
    return tuple(outs)
