"""aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor

If all padding is zero or negative, the result is a copy with the memory layout of the cropped tensor.
"""

import torch
from blocks.complex_numbers import as_reals, parts_of
from blocks.creation import fill
from blocks.joining import common_format
from blocks.number_range import without_overflow
from blocks.regions import arranged

OVERLOADS = ("aten::constant_pad_nd",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, pad, value=0):
    if len(pad) % 2 or len(pad) > 2 * self.dim():
        raise RuntimeError(f"pad {list(pad)} does not fit {self.dim()} dimensions")
    cropped, starts, shape = self, [0] * self.dim(), list(self.shape)
    for k in range(len(pad) // 2):
        d, (before, after) = self.dim() - 1 - k, pad[2 * k : 2 * k + 2]
        shape[d] += before + after
        if shape[d] < 0:
            raise RuntimeError(f"pad {list(pad)} does not fit {tuple(self.shape)}")
        first, end = max(-before, 0), self.shape[d] - max(-after, 0)
        cropped = cropped.narrow(d, min(first, self.shape[d]), max(end - first, 0))
        starts[d] = max(before, 0)
    if all([p <= 0 for p in pad]):
        out = torch.empty_like(cropped)
        fill(as_reals(out), as_reals(cropped))
        return out
    without_overflow(self.dtype, value)
    out = torch.empty(shape, dtype=self.dtype, device=self.device, memory_format=common_format([self]))
    if not self.is_complex():
        return arranged(cropped, out, starts, number=value)
    for part, source, number in zip(parts_of(out), parts_of(cropped), parts_of(value), strict=True):
        arranged(source, part, starts, number=number)
    return out
