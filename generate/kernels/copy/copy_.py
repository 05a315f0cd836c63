"""aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)

Either tensor may have the conjugate or the negative bit set. Unsigned integers wider than 8 bits (such as
hash_tensor's results) can only be copied to the same dtype.
"""

import torch
from blocks.complex_numbers import convert_into
from blocks.float8 import copy_float8, is_float8
from blocks.lazy_bits import has_bits, resolve_into
from blocks.tiles import copy_into

OVERLOADS = ("aten::copy_",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex32", "complex64", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, src, non_blocking=False):
    if self.dtype == src.dtype and self.dtype.itemsize > 1 and not self.dtype.is_signed:
        signed = {2: torch.int16, 4: torch.int32, 8: torch.int64}[self.dtype.itemsize]
        copy_into(self.view(signed), src.view(signed))
        return self
    if has_bits(self) or has_bits(src):
        return resolve_into(self, src)
    if is_float8(self) or is_float8(src):
        return copy_float8(self, src)
    if self.is_complex() or src.is_complex():
        return convert_into(self, src)
    return copy_into(self, src)
