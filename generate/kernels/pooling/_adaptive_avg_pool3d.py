"""aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor

Window o goes from floor(o * n / count) to ceil((o + 1) * n / count); gradients are gathered.
"""

from blocks.pooling import adaptive_average

OVERLOADS = ("aten::_adaptive_avg_pool3d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size):
    return adaptive_average(self, 3, output_size)
