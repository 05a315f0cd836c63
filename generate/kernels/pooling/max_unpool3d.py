"""aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor

Each element is stored at its index, and all others are 0. If several elements have one index, the last one is
stored.
"""

from blocks.unpooling import unpool

OVERLOADS = ("aten::max_unpool3d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, indices, output_size, stride, padding):
    if len(stride) != 3 or len(padding) != 3 or min(stride) < 1:
        raise RuntimeError(
            f"expected three positive strides and three paddings, got {tuple(stride)} and {tuple(padding)}"
        )
    return unpool(self, indices, 3, output_size)
