"""aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor

Elements beyond an edge mirror the input at that edge.
"""

from blocks.padding import pad

OVERLOADS = ("aten::reflection_pad3d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, padding):
    return pad(self, 3, padding, True)
