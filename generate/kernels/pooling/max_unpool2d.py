"""aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor

Zeros, with each element where its index says; of several of one index the last stays.
"""

from blocks.unpooling import unpool

OVERLOADS = ("aten::max_unpool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, indices, output_size):
    return unpool(self, indices, 2, output_size)
