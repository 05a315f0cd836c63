"""aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor

One flat grid over the output. One Philox gives four fp32 numbers or two fp64 ones by the method of Box and Muller.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::normal_functional",)
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
def kernel_normal(
    out_ptr,
    n,
    mean: tl.float64,
    std: tl.float64,
    seed: tl.int64,
    offset: tl.int64,
    shape,
    stride,
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    x = random_normals(seed, offset, start, out_ptr.dtype.element_ty.is_fp64(), BLOCK)
    mean = (tl.zeros([1], tl.float64) + mean).to(x.dtype)
    std = (tl.zeros([1], tl.float64) + std).to(x.dtype)
    tl.store(out_ptr + strided(i, shape, stride), (mean + std * x).to(out_ptr.dtype.element_ty), mask=i < n)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie dense in the same order."""
    if not all(t.is_contiguous() for t in tensors):
        order = sorted(range(tensors[0].dim()), key=tensors[0].stride, reverse=True)
        tensors = [t.permute(order) for t in tensors]
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, mean=0.0, std=1.0, *, generator=None, out=None, philox):
    seed, offset = philox
    if out is None:
        out = torch.empty_like(self)
    n = out.numel()
    shape, (stride,) = walk(out)
    kernel_normal[(triton.cdiv(n, 4096),)](out, n, mean, std, seed, offset, shape, stride, BLOCK=4096, num_warps=8)
    return out
