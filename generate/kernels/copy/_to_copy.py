"""aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor

A copy to another device type raises NotImplementedError, because the platform transfers it and not a kernel.
The conjugate and negative bits are resolved.
"""

import torch
from blocks.complex_numbers import convert_into
from blocks.float8 import copy_float8, is_float8
from blocks.lazy_bits import has_bits, resolve_into
from blocks.tiles import copy_into

OVERLOADS = ("aten::_to_copy",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex32", "complex64", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    if device is not None and torch.device(device).type != self.device.type:
        raise NotImplementedError(f"cannot copy from {self.device} to {device}: a transfer is not a kernel")
    out = torch.empty_like(self, dtype=dtype, memory_format=memory_format or torch.preserve_format)
    if has_bits(self):
        return resolve_into(out, self)
    if is_float8(self) or is_float8(out):
        return copy_float8(out, self)
    if self.is_complex() or out.is_complex():
        return convert_into(out, self)
    return copy_into(out, self)
