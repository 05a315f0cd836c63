"""aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor

One program for each element of the output walks along the reduced dimensions in blocks. Every lane keeps its best value
and that value's index; at the end the lanes are reduced to the first index of the largest value. NaN is the largest.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::argmax",)
DTYPES = ("bfloat16", "float16", "float32", "int32", "int64")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    return offset


@triton.jit
def kernel_argmax(x_ptr, o_ptr, n, kept_shape, kept_stride, shape, stride, FLOATING: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += strided(row, kept_shape, kept_stride)
    lane = tl.arange(0, BLOCK).to(tl.int64)
    best = tl.load(x_ptr + tl.zeros_like(lane))
    if FLOATING:
        best = best.to(tl.float32)
    index = tl.zeros_like(lane)
    for start in range(0, n, BLOCK):
        i = start + lane
        x = tl.load(x_ptr + strided(i, shape, stride), mask=i < n, other=0).to(best.dtype)
        better = (x > best) | ((x != x) & (best == best))
        better = better & (i < n)
        best = tl.where(better, x, best)
        index = tl.where(better, i, index)
    is_nan = best != best
    any_nan = tl.max(is_nan.to(tl.int32), axis=0) > 0
    largest = tl.max(tl.where(is_nan, tl.zeros_like(best) + tl.min(best, axis=0), best), axis=0)
    candidate = tl.where(any_nan, is_nan, best == largest)
    tl.store(o_ptr + row, tl.min(tl.where(candidate, index, n), axis=0))


def wrapper(self, dim=None, keepdim=False):
    every = list(range(self.dim()))
    reduced = every if dim is None or self.dim() == 0 else [dim % self.dim()]
    kept = [d for d in every if d not in reduced]
    n = 1
    for d in reduced:
        n *= self.size(d)
    if n == 0:
        raise IndexError("argmax(): the reduced dimensions are empty")
    shape = [1 if d in reduced else self.size(d) for d in every] if keepdim else [self.size(d) for d in kept]
    out = torch.empty(shape, dtype=torch.int64, device=self.device)
    if out.numel() > 0:
        kernel_argmax[(out.numel(),)](
            self,
            out,
            n,
            tuple(self.size(d) for d in kept),
            tuple(self.stride(d) for d in kept),
            tuple(self.size(d) for d in reduced),
            tuple(self.stride(d) for d in reduced),
            FLOATING=self.dtype.is_floating_point,
            BLOCK=min(1024, triton.next_power_of_2(n)),
        )
    return out
