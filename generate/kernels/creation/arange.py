"""aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None)
    -> Tensor
aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor
aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor

start + i * step over one flat grid: int64 where all three are integers, else fp64, as ATen computes it; for an integer
dtype start and step are cut to integers. The number of elements is ceil((end - start) / step), of int64 with the three
cut.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::arange", "aten::arange.start", "aten::arange.start_step")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_arange(out_ptr, start, step, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, convert(start + i * step, out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_arange_float(out_ptr, start: tl.float64, step: tl.float64, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.full([BLOCK], start, tl.float64) + i.to(tl.float64) * tl.full([BLOCK], step, tl.float64)
    tl.store(out_ptr + i, convert(x, out_ptr.dtype.element_ty), mask=i < n)


def wrapper(start, end=None, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    start, end = (0, start) if end is None else (start, end)
    if dtype == torch.int64:
        start, end, step = int(start), int(end), int(step)
    integer = not any(isinstance(bound, float) for bound in (start, end, step))
    n = -((start - end) // step) if integer else math.ceil((end - start) / step)
    if dtype is None:
        dtype = torch.int64 if integer else torch.get_default_dtype()
    out = torch.empty(n, dtype=dtype, device=device)
    if not dtype.is_floating_point:
        start, step, integer = int(start), int(step), True
    if integer:
        kernel_arange[(triton.cdiv(n, 4096),)](out, start, step, n, BLOCK=4096, num_warps=8)
    else:
        kernel_arange_float[(triton.cdiv(n, 4096),)](out, float(start), float(step), n, BLOCK=4096, num_warps=8)
    return out
