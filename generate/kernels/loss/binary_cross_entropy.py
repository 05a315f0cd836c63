"""aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor

Computes -weight * (t * max(log x, -100) + (1 - t) * max(log(1 - x), -100)). For mean (1) and sum (2), up to
1024 program instances each sum a chunk in a fixed order, and a last one adds up their results. So the sum is
deterministic. Few elements take a single program instance.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.offsets import coalesce, plain, strided
from blocks.types import identical_dtypes

OVERLOADS = ("aten::binary_cross_entropy",)
DTYPES = ("bfloat16", "float16", "float32", "float64")

ONE_PROGRAM = 16384  # most elements for a single program instance, which saves the second launch
CHUNK_ELEMENTS = 8192  # elements per program instance, as long as there are at most MOST_CHUNKS
MOST_CHUNKS = 1024  # the second kernel adds up the sums of all chunks in one block
CHUNK_BLOCK = 2048  # elements per step; a chunk is a multiple of it


@triton.jit
def log_clamped(x):
    """Return log(x), at least -100 as in ATen, and NaN if x is NaN."""
    log = tl.log(x)
    return tl.where(log < -100.0, -100.0, log)


@triton.jit
def log1m_clamped(x):
    """Return log(1 - x), at least -100, accurately even if 1 - x rounds to 1.

    With u = 1 - x, the formula is log(u) * (-x) / (u - 1), which cancels the rounding error in u.
    """
    u = 1 - x
    log = tl.where(u == 1, -x, tl.log(u) * -x / (u - 1))
    log = tl.where(u == 0, -100.0, log)
    return tl.where(log < -100.0, -100.0, log)


@triton.jit
def bce(x, target, weight):
    return ((target - 1) * log1m_clamped(x) - target * log_clamped(x)) * weight


@triton.jit
def opmath(x):
    """Convert x to the compute dtype: fp64 for fp64, fp32 for all others."""
    return x if x.dtype.is_fp64() else x.to(tl.float32)


@triton.jit
def kernel_sums(
    pointers, out_ptr, n, chunk, shape, strides, MEAN: tl.constexpr, UNITS: tl.constexpr, BLOCK: tl.constexpr
):
    """Sum the loss over a chunk of elements, one chunk per program instance.

    Args:
        pointers: (prediction, target) or (prediction, target, weight), n elements each, read.
        out_ptr: [programs], written.
        n: Number of elements.
        chunk: Elements per program instance; a multiple of BLOCK.
        shape: Sizes of the coalesced dimensions, encoded by `plain`; () for a single dimension.
        strides: For each tensor, its strides in these dimensions, encoded by `plain`.
        MEAN: Divide by n; only if there is one program instance.
        UNITS: For each tensor, True if its last stride is 1.
        BLOCK: Elements that are loaded at a time.
    """
    start = tl.program_id(0).to(tl.int64) * chunk
    acc = opmath(tl.zeros([BLOCK], pointers[0].dtype.element_ty))
    for first in range(0, chunk, BLOCK):
        i = start + first + tl.arange(0, BLOCK)
        mask = i < n
        x = opmath(tl.load(pointers[0] + strided(i, shape, strides[0], UNITS[0]), mask=mask, other=0.5))
        target = opmath(tl.load(pointers[1] + strided(i, shape, strides[1], UNITS[1]), mask=mask, other=0))
        weight = 1.0
        if len(pointers) == 3:
            weight = opmath(tl.load(pointers[2] + strided(i, shape, strides[2], UNITS[2]), mask=mask, other=0))
        acc += tl.where(mask, bce(x, target, weight), 0)
    out = tl.sum(acc, 0)
    if MEAN:
        out = out / n
    tl.store(out_ptr + tl.program_id(0), out.to(out_ptr.dtype.element_ty))


@triton.jit
def kernel_total(parts_ptr, out_ptr, parts, n, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """Add up the partial sums in one program instance.

    Args:
        parts_ptr: [parts], read.
        out_ptr: One element, written.
        parts: Number of partial sums; at most BLOCK.
        n: Number of elements in the loss.
        MEAN: Divide by n.
        BLOCK: Largest number of partial sums.
    """
    i = tl.arange(0, BLOCK)
    out = tl.sum(tl.load(parts_ptr + i, mask=i < parts, other=0), 0)
    if MEAN:
        out = out / n
    tl.store(out_ptr, out.to(out_ptr.dtype.element_ty))


def wrapper(self, target, weight=None, reduction=1):
    identical_dtypes(self, target, *([] if weight is None else [weight]))
    if reduction not in (0, 1, 2):
        raise RuntimeError(f"reduction must be 0 (none), 1 (mean) or 2 (sum), got {reduction}")
    shape = self.shape
    if target.shape != shape:  # as in ATen on the CPU: [1, 5] and [5, 1] are five pairs
        target = target.squeeze().expand(self.squeeze().shape).view(shape)
    if reduction == 0:
        weights = 1.0 if weight is None else weight
        return elementwise(bce, self, target, weights, common=self.dtype, out=torch.empty_like(self))
    tensors = (self, target) if weight is None else (self, target, weight.expand(shape))
    out = torch.empty((), dtype=self.dtype, device=self.device)
    n, mean = self.numel(), reduction == 1
    shape, strides = coalesce(tensors)
    units = tuple([s[-1] == 1 for s in strides])
    steps = tuple([plain(k) for k in shape]), tuple([tuple([plain(k) for k in s]) if shape else () for s in strides])
    programs = 1 if n <= ONE_PROGRAM else min(triton.cdiv(n, CHUNK_ELEMENTS), MOST_CHUNKS)
    chunk = triton.cdiv(triton.cdiv(n, programs), CHUNK_BLOCK) * CHUNK_BLOCK
    if programs == 1:
        kernel_sums[(1,)](tensors, out, n, chunk, *steps, MEAN=mean, UNITS=units, BLOCK=CHUNK_BLOCK, num_warps=8)
        return out
    dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
    parts = torch.empty(programs, dtype=dtype, device=self.device)
    kernel_sums[(programs,)](tensors, parts, n, chunk, *steps, MEAN=False, UNITS=units, BLOCK=CHUNK_BLOCK, num_warps=8)
    kernel_total[(1,)](parts, out, programs, n, MEAN=mean, BLOCK=MOST_CHUNKS)
    return out
