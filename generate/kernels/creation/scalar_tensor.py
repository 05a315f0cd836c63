"""aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor

One program writes one element. A float comes in fp64, since float64 may be asked for.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::scalar_tensor",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_scalar_tensor(out_ptr, value):
    tl.store(out_ptr, convert(tl.zeros([], tl.int1) + value, out_ptr.dtype.element_ty))


@triton.jit
def kernel_scalar_tensor_float(out_ptr, value: tl.float64):
    tl.store(out_ptr, convert(tl.full([], value, tl.float64), out_ptr.dtype.element_ty))


def wrapper(s, *, dtype=None, layout=None, device=None, pin_memory=None):
    out = torch.empty((), dtype=dtype, device=device)
    kernel = kernel_scalar_tensor_float if isinstance(s, float) else kernel_scalar_tensor
    kernel[(1,)](out, s)
    return out
