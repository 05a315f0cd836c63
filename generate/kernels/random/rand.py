"""aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor
aten::rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device?
    device=None, bool? pin_memory=None) -> Tensor

One flat grid over the memory of a new tensor, which is dense.
One Philox gives four fp32 numbers of 24 bits or two fp64 ones of 53. What rounds
to 1 becomes 0, as in ATen.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::rand", "aten::rand.generator")
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def four_words(seed, offset, i):
    """Four blocks of random uint32 of counters (offset, i)."""
    call = tl.zeros_like(i) + offset
    low, high = call.to(tl.uint32), (call >> 32).to(tl.uint32)
    return tl.philox(seed, low, high, i.to(tl.uint32), (i >> 32).to(tl.uint32))


@triton.jit
def unit64(high, low):
    """Doubles in [0, 1): 53 bits of two blocks of words."""
    return ((high >> 5).to(tl.float64) * 67108864.0 + (low >> 6).to(tl.float64)) * 1.1102230246251565e-16


@triton.jit
def random_units(seed, offset, start, DOUBLE: tl.constexpr, BLOCK: tl.constexpr):
    """Random numbers in [0, 1) [BLOCK] of elements start, start + 1, ...: float64 of 53 bits, or float32 of 24."""
    if DOUBLE:
        a, b, c, d = four_words(seed, offset, start // 2 + tl.arange(0, BLOCK // 2))
        x = tl.join(unit64(a, b), unit64(c, d))
    else:
        a, b, c, d = four_words(seed, offset, start // 4 + tl.arange(0, BLOCK // 4))
        x = (tl.join(tl.join(a, c), tl.join(b, d)) >> 8).to(tl.float32) * 5.9604644775390625e-08
    return tl.reshape(x, [BLOCK])


@triton.jit(do_not_specialize=["seed", "offset"])
def kernel_rand(out_ptr, n, seed: tl.int64, offset: tl.int64, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    dtype = out_ptr.dtype.element_ty
    x = random_units(seed, offset, start, dtype.is_fp64(), BLOCK).to(dtype)
    x = tl.where(x >= 1.0, 0.0, x).to(dtype)
    tl.store(out_ptr + i, x, mask=i < n)


def wrapper(size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None, philox):
    seed, offset = philox
    out = torch.empty(size, dtype=dtype, device=device)
    n = out.numel()
    kernel_rand[(triton.cdiv(n, 4096),)](out, n, seed, offset, BLOCK=4096, num_warps=8)
    return out
