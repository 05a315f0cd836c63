"""aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor

Elements beyond an edge repeat the element at that edge.
"""

from blocks.padding import pad

OVERLOADS = ("aten::replication_pad2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, padding):
    return pad(self, 2, padding, False)
