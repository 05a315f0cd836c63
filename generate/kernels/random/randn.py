"""aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor
aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device?
    device=None, bool? pin_memory=None) -> Tensor

One flat grid over the memory of a new tensor, which is dense.
One Philox gives four fp32 numbers or two fp64 ones by the method of Box and Muller.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::randn", "aten::randn.generator")
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
def unit32(words):
    """Numbers in (0, 1] of blocks of words; the least is 2^-33."""
    return words.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10


@triton.jit
def normal_pair(u, v):
    """Two blocks of standard normal numbers of two uniform ones, u in (0, 1] (Box and Muller, 1958)."""
    radius, angle = tl.sqrt(-2.0 * tl.log(u)), v * 6.283185307179586
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def random_normals(seed, offset, start, DOUBLE: tl.constexpr, BLOCK: tl.constexpr):
    """Random standard normal numbers [BLOCK] of elements start, start + 1, ..., float64 or float32."""
    if DOUBLE:
        a, b, c, d = four_words(seed, offset, start // 2 + tl.arange(0, BLOCK // 2))
        w, x = normal_pair(unit64(a, b) + 1.1102230246251565e-16, unit64(c, d))
        out = tl.join(w, x)
    else:
        a, b, c, d = four_words(seed, offset, start // 4 + tl.arange(0, BLOCK // 4))
        w, x = normal_pair(unit32(a), (b >> 8).to(tl.float32) * 5.9604644775390625e-08)
        y, z = normal_pair(unit32(c), (d >> 8).to(tl.float32) * 5.9604644775390625e-08)
        out = tl.join(tl.join(w, y), tl.join(x, z))
    return tl.reshape(out, [BLOCK])


@triton.jit(do_not_specialize=["seed", "offset"])
def kernel_randn(out_ptr, n, seed: tl.int64, offset: tl.int64, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    dtype = out_ptr.dtype.element_ty
    x = random_normals(seed, offset, start, dtype.is_fp64(), BLOCK)
    tl.store(out_ptr + i, x.to(dtype), mask=i < n)


def wrapper(size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None, philox):
    seed, offset = philox
    out = torch.empty(size, dtype=dtype, device=device)
    n = out.numel()
    kernel_randn[(triton.cdiv(n, 4096),)](out, n, seed, offset, BLOCK=4096, num_warps=8)
    return out
