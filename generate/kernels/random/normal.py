"""aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor
aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor
aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor
aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None,
    Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor

One flat grid over a new contiguous tensor; means and standard deviations are numbers, or tensors that broadcast.
One Philox gives four fp32 numbers or two fp64 ones by the method of Box and Muller.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = (
    "aten::normal.Tensor_Tensor",
    "aten::normal.Tensor_float",
    "aten::normal.float_Tensor",
    "aten::normal.float_float",
)
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


@triton.jit
def parameter(number, x_ptr, at, mask, DTYPE: tl.constexpr, IS_TENSOR: tl.constexpr):
    """A number, or the elements of a tensor at these offsets."""
    x = tl.zeros([1], tl.float64) + number
    if IS_TENSOR:
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
    return x.to(DTYPE)


@triton.jit(do_not_specialize=["seed", "offset"])
def kernel_normal(
    out_ptr,
    n,
    mean_ptr,
    std_ptr,
    mean: tl.float64,
    std: tl.float64,
    seed: tl.int64,
    offset: tl.int64,
    shape,
    mean_stride,
    std_stride,
    MEAN_IS_TENSOR: tl.constexpr,
    STD_IS_TENSOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    mask = i < n
    x = random_normals(seed, offset, start, out_ptr.dtype.element_ty.is_fp64(), BLOCK)
    m = parameter(mean, mean_ptr, strided(i, shape, mean_stride), mask, x.dtype, MEAN_IS_TENSOR)
    s = parameter(std, std_ptr, strided(i, shape, std_stride), mask, x.dtype, STD_IS_TENSOR)
    tl.store(out_ptr + i, (m + s * x).to(out_ptr.dtype.element_ty), mask=mask)


def wrapper(mean, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None, philox):
    seed, offset = philox
    of_mean, of_std = isinstance(mean, torch.Tensor), isinstance(std, torch.Tensor)
    if of_mean or of_std:
        first = mean if of_mean else std
        shape = torch.broadcast_shapes(mean.shape, std.shape) if of_mean and of_std else first.shape
        out = torch.empty(shape, dtype=first.dtype, device=first.device)
    else:
        out = torch.empty(size, dtype=dtype, device=device)
    n = out.numel()
    means, deviations = mean.expand(out.shape) if of_mean else out, std.expand(out.shape) if of_std else out
    flat = means.is_contiguous() and deviations.is_contiguous()
    kernel_normal[(triton.cdiv(n, 4096),)](
        out,
        n,
        means,
        deviations,
        0.0 if of_mean else mean,
        0.0 if of_std else std,
        seed,
        offset,
        (n,) if flat else tuple(out.shape),
        (1,) if flat else means.stride(),
        (1,) if flat else deviations.stride(),
        MEAN_IS_TENSOR=of_mean,
        STD_IS_TENSOR=of_std,
        BLOCK=4096,
        num_warps=8,
    )
    return out
