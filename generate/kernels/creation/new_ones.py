"""aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

Fills every element with 1.
"""

from blocks.creation import new_full

OVERLOADS = ("aten::new_ones",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return new_full(size, 1, dtype or self.dtype, self.device if device is None else device)
