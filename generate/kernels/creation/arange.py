"""aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None)
    -> Tensor
aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor
aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor

Element i is start + i * step. The computation is in int64 if all three numbers are integers, and in fp64
otherwise, as in ATen. For an integer dtype, start and step are truncated to integers.

The number of elements is ceil((end - start) / step). For dtype int64, it is computed from the truncated
numbers.
"""

import math

import torch
import triton
from blocks.elementwise import elementwise, flat_index
from blocks.types import common_dtype

OVERLOADS = ("aten::arange", "aten::arange.start", "aten::arange.start_step")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def element(i, start, step):
    return start + i * step


def wrapper(start, end=None, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    start, end = (0, start) if end is None else (start, end)
    if dtype == torch.int64:
        start, end, step = int(start), int(end), int(step)
    integer = not any(isinstance(bound, float) for bound in (start, end, step))
    n = -((start - end) // step) if integer else math.ceil((end - start) / step)
    out = torch.empty(n, dtype=dtype or common_dtype(start, end, step), device=device)
    common = torch.float64 if out.is_floating_point() and not integer else torch.int64
    return elementwise(element, start, step, source=(flat_index,), common=common, out=out)
