"""aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

One flat grid over a new contiguous tensor; without a dtype the value's type decides, as in ATen. A float comes in fp64,
since float64 may be asked for.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::full",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_full(out_ptr, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = convert(tl.zeros([BLOCK], tl.int1) + value, out_ptr.dtype.element_ty)
    tl.store(out_ptr + i, x, mask=i < n)


@triton.jit
def kernel_full_float(out_ptr, value: tl.float64, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = convert(tl.full([BLOCK], value, tl.float64), out_ptr.dtype.element_ty)
    tl.store(out_ptr + i, x, mask=i < n)


def wrapper(size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    if dtype is None:
        integer = torch.bool if isinstance(fill_value, bool) else torch.int64
        dtype = torch.get_default_dtype() if isinstance(fill_value, float) else integer
    out = torch.empty(size, dtype=dtype, device=device)
    n = out.numel()
    kernel = kernel_full_float if isinstance(fill_value, float) else kernel_full
    kernel[(triton.cdiv(n, 4096),)](out, fill_value, n, BLOCK=4096, num_warps=8)
    return out
