"""aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
"""

import torch
from blocks.arithmetic import divide
from blocks.creation import fill
from blocks.division import divide_whole
from blocks.elementwise import elementwise

OVERLOADS = ("aten::div.Tensor_mode", "aten::div.Scalar_mode")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other, *, rounding_mode, out=None):
    if not isinstance(self, torch.Tensor) and not isinstance(other, torch.Tensor):
        self = fill(torch.empty((), dtype=torch.float32 if isinstance(self, float) else torch.int64), self)
    if rounding_mode is None:
        return elementwise(divide, self, other, to_float=True, out=out)
    return divide_whole(self, other, rounding_mode, out)
