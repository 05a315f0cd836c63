"""aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2]
    stride) -> Tensor

Each pixel sums its copies in the columns, gathered window by window, without atomics.
"""

from blocks.columns import from_columns

OVERLOADS = ("aten::col2im",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64")


def wrapper(self, output_size, kernel_size, dilation, padding, stride):
    return from_columns(self, output_size, kernel_size, dilation, padding, stride)
