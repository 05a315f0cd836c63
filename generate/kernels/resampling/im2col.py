"""aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor

Each column holds one window: its elements channel by channel, with 0 outside the image.
"""

from blocks.columns import to_columns

OVERLOADS = ("aten::im2col",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64")


def wrapper(self, kernel_size, dilation, padding, stride):
    return to_columns(self, kernel_size, dilation, padding, stride)
