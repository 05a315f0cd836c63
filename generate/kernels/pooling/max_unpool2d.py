"""aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor

Each element is stored at its index, and all others are 0. If several elements have one index, the last one is
stored.
"""

from blocks.unpooling import unpool

OVERLOADS = ("aten::max_unpool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, indices, output_size):
    return unpool(self, indices, 2, output_size)
