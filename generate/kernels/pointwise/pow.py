"""aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor

2^(y log2 |x|) with the signs and limits of IEEE 754's pow, over one flat grid: in fp32 for half precision and in fp64
for fp32, since log2's rounding grows with the exponent. A few exponents are multiplications or roots. Integers are
multiplied by repeated squaring, exact modulo their size; negative exponents give 0, but of 1 and -1.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


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
def power(x, y):
    """pow(x, y) of floating-point numbers of one type."""
    size = tl.abs(x)
    r = tl.exp2(y * tl.log2(size))
    whole = tl.floor(y) == y
    odd = whole & (tl.abs(y) < 9007199254740992.0) & (y - 2 * tl.floor(y * 0.5) == 1)
    r = tl.where(((x < 0) | (1 / x < 0)) & odd, -r, r)
    r = tl.where((x < 0) & (size < float("inf")) & ~whole, float("nan"), r)
    r = tl.where((x == -1) & (tl.abs(y) == float("inf")), 1.0, r)
    return tl.where((y == 0) | (x == 1), 1.0, r)


@triton.jit
def power_of_integers(x, y):
    """x to the y modulo 2^64, both int64."""
    left = tl.where(y < 0, 0, y)
    r = tl.full(x.shape, 1, tl.int64)
    base = x
    while tl.max(left, 0) > 0:
        r = tl.where(left & 1 == 1, r * base, r)
        base = base * base
        left = left >> 1
    unit = tl.where(x == 1, 1, tl.where(x == -1, 1 - 2 * (y & 1), 0))
    return tl.where(y < 0, unit, r)


@triton.jit
def kernel_pow_scalar(
    x_ptr, y: tl.float64, out_ptr, n, shape, x_stride, out_stride, SHORT: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    narrow: tl.constexpr = tl.float64 if dtype.is_fp64() else tl.float32
    wide: tl.constexpr = tl.float32 if dtype.is_fp16() or dtype.is_bf16() else tl.float64
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask, other=1)
    if SHORT == 2:
        out = x.to(narrow) * x.to(narrow)
    elif SHORT == 3:
        out = x.to(narrow) * x.to(narrow) * x.to(narrow)
    elif SHORT == 0.5:
        out = tl.sqrt_rn(x.to(narrow))
    elif SHORT == -0.5:
        out = 1 / tl.sqrt_rn(x.to(narrow))
    elif SHORT == -1:
        out = 1 / x.to(narrow)
    elif SHORT == -2:
        out = 1 / (x.to(narrow) * x.to(narrow))
    else:
        out = power(x.to(wide), tl.full([BLOCK], y, wide))
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(narrow).to(dtype), mask=mask)


@triton.jit
def kernel_pow_integer(x_ptr, y, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=i < n, other=1).to(tl.int64)
    out = power_of_integers(x, tl.full([BLOCK], y, tl.int64))
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_pow(x_ptr, y_ptr, out_ptr, n, shape, x_stride, y_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask, other=1)
    y = tl.load(y_ptr + strided(i, shape, y_stride), mask=mask, other=1)
    if dtype.is_floating():
        wide: tl.constexpr = tl.float32 if dtype.is_fp16() or dtype.is_bf16() else tl.float64
        narrow: tl.constexpr = tl.float64 if dtype.is_fp64() else tl.float32
        out = power(x.to(wide), y.to(wide)).to(narrow)
    else:
        out = power_of_integers(x.to(tl.int64), y.to(tl.int64))
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(dtype), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie alike and without gaps."""
    first = tensors[0]
    if all(t.is_contiguous() for t in tensors):
        return (first.numel(),), [(1,)] * len(tensors)
    shape, strides = tuple(first.shape), [t.stride() for t in tensors]
    dense = 1 + sum((n - 1) * s for n, s in zip(shape, strides[0], strict=True)) == first.numel()
    if dense and all(s == strides[0] for s in strides):
        return (first.numel(),), [(1,)] * len(tensors)
    return shape, strides


def empty_broadcast(tensors, dtype):
    """New tensor of the broadcast shape, its dimensions in memory ordered as the operands' (TensorIterator's rule)."""
    shape = tensors[0].shape
    order = list(range(len(shape)))[::-1]  # fastest dimension first
    for i in range(1, len(order)):
        k = i
        for j in range(i - 1, -1, -1):
            sign = stride_order(tensors, order[j], order[k])
            if sign < 0:
                break
            if sign > 0:
                order[j], order[k], k = order[k], order[j], j
    out = torch.empty([shape[d] for d in order[::-1]], dtype=dtype, device=tensors[0].device)
    return out.permute([order[::-1].index(d) for d in range(len(shape))])


def stride_order(tensors, a, b):
    """Positive where dimension a has to lie outside b, negative where inside, 0 where no operand tells."""
    for t in tensors:
        if t.stride(a) == 0 or t.stride(b) == 0:
            continue
        if t.stride(a) != t.stride(b):
            return t.stride(a) - t.stride(b)
        if t.shape[a] > t.shape[b]:
            return 1
    return 0


def of_tensors(self, exponent, out):
    x, y = torch.broadcast_tensors(self, exponent)
    if out is None:
        out = empty_broadcast([x, y], torch.result_type(self, exponent))
    n = out.numel()
    shape, strides = walk(x, y, out)
    kernel_pow[(triton.cdiv(n, 1024),)](x, y, out, n, shape, *strides, BLOCK=1024)
    return out


def wrapper(self, exponent, *, out=None):
    if isinstance(exponent, torch.Tensor):
        return of_tensors(self, exponent, out)
    dtype = torch.result_type(self, exponent)
    if out is None:
        out = torch.empty_like(self, dtype=dtype)
    n = out.numel()
    shape, (x_stride, out_stride) = walk(self, out)
    if dtype.is_floating_point:
        short = exponent if exponent in (2, 3, 0.5, -0.5, -1, -2) else 0
        kernel_pow_scalar[(triton.cdiv(n, 2048),)](
            self, float(exponent), out, n, shape, x_stride, out_stride, SHORT=short, BLOCK=2048, num_warps=8
        )
    else:
        kernel_pow_integer[(triton.cdiv(n, 2048),)](
            self, int(exponent), out, n, shape, x_stride, out_stride, BLOCK=2048, num_warps=8
        )
    return out
