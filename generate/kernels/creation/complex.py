"""aten::complex(Tensor real, Tensor imag) -> Tensor"""

import torch
from blocks.complex_numbers import parts_of
from blocks.creation import fill
from blocks.offsets import empty_result

OVERLOADS = ("aten::complex",)
DTYPES = ("float16", "float32", "float64")


def wrapper(real, imag):
    if real.dtype != imag.dtype:
        raise RuntimeError(f"real and imag must share one dtype, got {real.dtype} and {imag.dtype}")
    out = empty_result(list(torch.broadcast_tensors(real, imag)), real.dtype.to_complex())
    for part, source in zip(parts_of(out), (real, imag), strict=True):
        fill(part, source)
    return out
