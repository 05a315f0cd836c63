"""aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor

One flat grid over the output. One Philox gives four fp32 numbers of 24 bits or two fp64 ones of 53.
What rounds to `to` becomes `from`, as in ATen.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::uniform",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


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
def kernel_uniform(
    out_ptr,
    n,
    low: tl.float64,
    high: tl.float64,
    seed: tl.int64,
    offset: tl.int64,
    shape,
    stride,
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    dtype = out_ptr.dtype.element_ty
    x = random_units(seed, offset, start, dtype.is_fp64(), BLOCK)
    low = (tl.zeros([1], tl.float64) + low).to(x.dtype)
    high = (tl.zeros([1], tl.float64) + high).to(x.dtype)
    x = (low + x * (high - low)).to(dtype)
    x = tl.where(x >= high.to(dtype), low.to(dtype), x)
    tl.store(out_ptr + strided(i, shape, stride), x, mask=i < n)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie dense in the same order."""
    if not all(t.is_contiguous() for t in tensors):
        order = sorted(range(tensors[0].dim()), key=tensors[0].stride, reverse=True)
        tensors = [t.permute(order) for t in tensors]
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, from_=0.0, to=1.0, *, generator=None, out=None, philox):
    seed, offset = philox
    if out is None:
        out = torch.empty_like(self)
    n = out.numel()
    shape, (stride,) = walk(out)
    kernel_uniform[(triton.cdiv(n, 4096),)](out, n, from_, to, seed, offset, shape, stride, BLOCK=4096, num_warps=8)
    return out
