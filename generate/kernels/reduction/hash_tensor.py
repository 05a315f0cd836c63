"""aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor

The result is the exclusive or over 64 bits per element: the bits of floats as fp64, and of integers as int64.
If few results reduce many elements, several program instances each reduce a part of one result and combine
them with atomics.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.limits import PROCESSORS
from blocks.offsets import integer, integer_value, strided, walk

OVERLOADS = ("aten::hash_tensor",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

SMALL_HASH = 4096  # elements below which integers are encoded, so that sizes and strides add no kernel variants
HASH_TILE = 4096  # elements per tile, 16 per thread with 8 warps


@triton.jit
def wide_bits(x):
    """Return an element's 64 bits; NaN keeps its fraction bits, which a cast may not preserve."""
    if x.dtype.is_fp64():
        bits = x.to(tl.int64, bitcast=True)
    elif x.dtype.is_floating():
        FRACTION: tl.constexpr = 23 if x.dtype.is_fp32() else 10 if x.dtype.is_fp16() else 7
        bits = x.to(tl.int32 if x.dtype.is_fp32() else tl.int16, bitcast=True).to(tl.int64)
        nan = (bits & -0x8000000000000000) | 0x7FF8000000000000 | ((bits & ((1 << FRACTION) - 1)) << (52 - FRACTION))
        x = x.to(tl.float32)
        bits = tl.where(x != x, nan, x.to(tl.float64).to(tl.int64, bitcast=True))
    else:
        bits = x.to(tl.int64)
    return bits


@triton.jit
def hash_kernel(
    x_ptr,
    out_ptr,
    m,
    n,
    steps,
    kept,
    reduced,
    PARTS: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Reduce `steps` blocks of columns for BLOCK_M results.

    Args:
        x_ptr: [m, n], read.
        out_ptr: [m] int64, written, or updated with atomics if PARTS.
        m: Number of results.
        n: Number of elements per result.
        steps: Blocks of columns per program instance.
        kept: (shape, strides) of x in the dimensions that are kept, from `walk`.
        reduced: (shape, strides) of x in the dimensions that are reduced, from `walk`.
        PARTS: The columns are split over several program instances.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK_M: Results per program instance.
        BLOCK_N: Columns per block.
    """
    m, n = integer_value(m, PLAIN), integer_value(n, PLAIN)
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    steps = integer_value(steps, PLAIN)
    begin = tl.program_id(1).to(tl.int64) * steps * BLOCK_N
    x_ptr += strided(rows, kept[0], kept[1][0], False, PLAIN)[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.int64)
    for step in range(0, steps):
        cols = begin + step * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        x = tl.load(x_ptr + strided(cols, reduced[0], reduced[1][0], False, PLAIN)[None, :], mask=mask, other=0)
        acc ^= tl.where(mask, wide_bits(x), 0)
    hashes = tl.xor_sum(acc, 1)
    if PARTS:
        # xor does not depend on the order, so atomics give the same result in every run.
        tl.atomic_xor(out_ptr + rows, hashes, mask=rows < m, sem="relaxed")
    else:
        tl.store(out_ptr + rows, hashes, mask=rows < m)


def hash_tile(m, n, kept, reduced):
    """Return BLOCK_M and BLOCK_N; the longer one runs along the smaller of the two innermost strides."""
    if m * n < SMALL_HASH:
        return (32, 64) if n <= 64 else (2, 1024)
    if m > 1 and kept < reduced:
        BLOCK_M = min(triton.next_power_of_2(m), 128)
        return BLOCK_M, min(triton.next_power_of_2(n), HASH_TILE // BLOCK_M)
    BLOCK_N = min(triton.next_power_of_2(n), HASH_TILE)
    return min(triton.next_power_of_2(m), HASH_TILE // BLOCK_N), BLOCK_N


def wrapper(self, dim=(), *, keepdim=False, mode=0):
    dims = list(range(self.dim()))
    over = [d + max(self.dim(), 1) if d < 0 else d for d in dim]
    if any([d not in range(max(self.dim(), 1)) for d in over]):
        raise IndexError(f"dimensions {dim} are out of range for {tuple(self.shape)}")
    if mode != 0 or len(set(over)) != len(over) or not (over or self.numel()):
        raise RuntimeError(f"cannot hash {tuple(self.shape)} over dimensions {dim} in mode {mode}")
    over = [d for d in dims if d in over or not dim]
    kept_dims = [d for d in dims if d not in over]
    shape = [1 if d in over else self.shape[d] for d in dims if keepdim or d in kept_dims]
    m, n = math.prod(shape), math.prod([self.shape[d] for d in over])
    if n == 0:
        raise IndexError(f"dimensions {dim} are empty in {tuple(self.shape)}")
    out = torch.empty(shape, dtype=torch.int64, device=self.device)
    if m:
        small = m * n < SMALL_HASH
        inner = [min([self.stride(d) for d in some if self.shape[d] > 1] or [0]) for some in (kept_dims, over)]
        BLOCK_M, BLOCK_N = hash_tile(m, n, *inner)
        parts = max(min(4 * PROCESSORS // triton.cdiv(m, BLOCK_M), n // (2 * BLOCK_N)), 1)
        steps = triton.cdiv(triton.cdiv(n, parts), BLOCK_N)
        parts = triton.cdiv(n, steps * BLOCK_N)
        if parts > 1:
            fill(out, 0)
        hash_kernel[(triton.cdiv(m, BLOCK_M), parts)](
            self,
            out,
            integer(m, small),
            integer(n, small),
            integer(steps, small),
            walk([self], kept_dims, small),
            walk([self], over, small),
            PARTS=parts > 1,
            PLAIN=small,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            num_warps=8,
        )
    return out.view(torch.uint64)
