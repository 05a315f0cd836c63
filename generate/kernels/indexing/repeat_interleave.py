"""aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor

A prefix sum computes the end position for each number's repeats. Each result element then finds its number by
binary search. If output_size is None, it is read from the device.
"""

import torch
import triton
import triton.language as tl
from blocks.compaction import starts_of
from blocks.offsets import plain, plain_value
from blocks.search import searched

OVERLOADS = ("aten::repeat_interleave.Tensor",)
DTYPES = ("int32", "int64")


@triton.jit
def repeats_kernel(repeats_ptr, counts_ptr, starts_ptr, ends_ptr, n, stride, FINAL: tl.constexpr, BLOCK: tl.constexpr):
    """Store each block's sum over repeats, or with FINAL the end position for each number.

    Args:
        repeats_ptr: [n], read.
        counts_ptr: [blocks] int64, written unless FINAL, else None.
        starts_ptr: [blocks] int64, the sum before each block, read if FINAL, else None.
        ends_ptr: [n] int64, written if FINAL, else None.
        n: Number of repeats, encoded by `plain`.
        stride: Stride of the repeats, encoded by `plain`.
        FINAL: Store end positions instead of block sums.
        BLOCK: Repeats per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(n)
    repeats = tl.load(repeats_ptr + i * plain_value(stride), mask=mask, other=0).to(tl.int64)
    if FINAL:
        tl.store(ends_ptr + i, tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(repeats, 0), mask=mask)
    else:
        tl.store(counts_ptr + tl.program_id(0), tl.sum(repeats, 0))


def wrapper(repeats, *, output_size=None):
    if repeats.dim() != 1 or repeats.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(
            f"repeats must be an int32 or int64 vector, got {repeats.dtype} with {repeats.dim()} dimensions"
        )
    n = repeats.shape[0]
    blocks, device = triton.cdiv(n, 1024), repeats.device
    if n == 0:
        return torch.empty(0, dtype=repeats.dtype, device=device)
    counts = torch.empty(blocks, dtype=torch.int64, device=device)
    ends = torch.empty(n, dtype=torch.int64, device=device)
    stride = plain(repeats.stride(0))
    repeats_kernel[(blocks,)](repeats, counts, None, None, plain(n), stride, FINAL=False, BLOCK=1024)
    starts = starts_of(counts)
    repeats_kernel[(blocks,)](repeats, None, starts, ends, plain(n), stride, FINAL=True, BLOCK=1024)
    if output_size is None:
        output_size = starts.select(0, blocks).item()
    out = torch.empty(output_size, dtype=repeats.dtype, device=device)
    return searched(ends, None, out, True)
