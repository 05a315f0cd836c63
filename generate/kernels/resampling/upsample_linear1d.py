"""aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor

Axis by axis, in fp32, or in fp64 for float64; gradients are gathered of those that element i went to.
"""

from blocks.resampling import resample

OVERLOADS = ("aten::upsample_linear1d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size, align_corners, scales=None):
    return resample(self, output_size, (scales,), "linear", align_corners)
