"""aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor

The largest number, read back from the device, determines the bin count. If there are few bins for the
elements, a program instance counts in its own bins and adds them to the result with atomics. Otherwise each
element uses an atomic. Weights are added with atomics, in fp32 for fp32 weights and else in fp64. Few bins
that take atomics have several copies, which reduces contention, and the copies are added up.
"""

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.histograms import add_counts
from blocks.limits import INT64_MAX
from blocks.offsets import plain, plain_value
from blocks.reduction import reduce
from blocks.types import convert

OVERLOADS = ("aten::bincount",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

FEW_BINS = 128  # largest number of bins for which a block of 1024 elements is counted in registers first
# For many elements per bin, longer blocks are counted in registers, because fewer atomics then follow:
LONG_BINS = 1024
LONG_INPUT = 1 << 20
ELEMENTS_PER_BIN = 4096
# Otherwise, copies of the bins reduce contention between atomics:
COPIED_BINS = 65536  # most bins in all copies together, which have to be set to 0 and added up
ELEMENTS_PER_COPY = 65536


@triton.jit
def most_if_negative(x):
    """Return the number, or the largest int64 if it is negative."""
    return tl.where(x < 0, 0x7FFFFFFFFFFFFFFF, x.to(tl.int64))


@triton.jit
def bin_by_bin_kernel(x_ptr, weights_ptr, out_ptr, n, bins, copies, stride, weight_stride, BLOCK: tl.constexpr):
    """Add BLOCK elements or weights with one atomic each.

    Integer arguments except `copies` are encoded by `plain`.

    Args:
        x_ptr: [n] integers, read.
        weights_ptr: [n], read, or None.
        out_ptr: [copies, bins], updated with atomics; program instances take turns with the copies.
        n: Number of elements.
        bins: Number of bins.
        copies: Number of copies of the bins.
        stride: Stride of x.
        weight_stride: Stride of the weights; 0 if there are none.
        BLOCK: Elements per program instance.
    """
    n, bins = plain_value(n), plain_value(bins)
    out_ptr += (tl.program_id(0) % copies).to(tl.int64) * bins
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bin_index = tl.load(x_ptr + i * plain_value(stride), mask=i < n, other=0).to(tl.int64)
    inside = (i < n) & (bin_index >= 0) & (bin_index < bins)
    if weights_ptr is not None:
        weight = convert(
            tl.load(weights_ptr + i * plain_value(weight_stride), mask=i < n, other=0), out_ptr.dtype.element_ty
        )
        tl.atomic_add(out_ptr + bin_index, weight, mask=inside, sem="relaxed")
    else:
        add_counts(out_ptr, bin_index, inside, bins, 0)


@triton.jit
def own_bins_kernel(x_ptr, out_ptr, n, bins, stride, SIZE: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """Count BLOCKS blocks in registers, then add each nonzero bin with one atomic.

    Args:
        x_ptr: [n] integers, read.
        out_ptr: [bins] int64, updated with atomics.
        n: Number of elements, encoded by `plain`.
        bins: Number of bins, encoded by `plain`; at most SIZE.
        stride: Stride of x, encoded by `plain`.
        SIZE: Number of counters, a power of 2.
        BLOCK: Elements that are loaded at a time.
        BLOCKS: Blocks per program instance.
    """
    n, bins = plain_value(n), plain_value(bins)
    counts = tl.zeros([SIZE], tl.int32)
    for k in range(BLOCKS):
        i = (tl.program_id(0).to(tl.int64) * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        bin_index = tl.load(x_ptr + i * plain_value(stride), mask=i < n, other=0).to(tl.int64)
        inside = (i < n) & (bin_index >= 0) & (bin_index < bins)
        counts += tl.histogram(bin_index.to(tl.int32), SIZE, inside)
    k = tl.arange(0, SIZE)
    tl.atomic_add(out_ptr + k, counts.to(tl.int64), mask=(k < bins) & (counts > 0), sem="relaxed")


def wrapper(self, weights=None, minlength=0):
    if minlength < 0 or self.dim() != 1 or self.is_floating_point() or self.dtype == torch.bool:
        raise RuntimeError(
            f"bincount needs an integer vector and minlength >= 0, got {self.dtype} {tuple(self.shape)}, {minlength}"
        )
    n, dtype, bins = self.shape[0], torch.int64, minlength
    if n:
        if weights is not None:
            if weights.shape != self.shape:
                raise RuntimeError(f"weights {tuple(weights.shape)} do not match input {tuple(self.shape)}")
            dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
        options = {"map": most_if_negative, "common": self.dtype, "values": (torch.int64,)}
        most = reduce("max", [self], None, dtype=torch.int64, **options).item()
        if most == INT64_MAX:  # from `most_if_negative`
            raise RuntimeError("bincount does not support negative integers")
        bins = max(most + 1, minlength)
    size = max(triton.next_power_of_2(bins), 16)
    # Counting then costs much more than the atomics.
    long = size <= LONG_BINS and n >= LONG_INPUT and n >= ELEMENTS_PER_BIN * size
    private_bins = weights is None and (bins <= FEW_BINS or long)
    copies = 1 if private_bins else max(min(COPIED_BINS // max(bins, 1), n // ELEMENTS_PER_COPY), 1)
    out = fill(torch.empty((copies, bins), dtype=dtype, device=self.device), 0)
    if n and private_bins:
        BLOCK, BLOCKS = (2048, 8) if long else (1024, 1)
        sizes = plain(n), plain(bins), plain(self.stride(0))
        own_bins_kernel[(triton.cdiv(n, BLOCK * BLOCKS),)](self, out, *sizes, SIZE=size, BLOCK=BLOCK, BLOCKS=BLOCKS)
    elif n:
        strides = plain(self.stride(0)), 0 if weights is None else plain(weights.stride(0))
        bin_by_bin_kernel[(triton.cdiv(n, 1024),)](
            self, weights, out, plain(n), plain(bins), copies, *strides, BLOCK=1024
        )
    return out.view(bins) if copies == 1 else reduce("sum", [out], [0], dtype=dtype)
