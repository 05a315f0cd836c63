"""aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor

The interpolation weights are computed axis by axis, in fp32 (fp64 for fp64).
"""

from blocks.resampling import resample

OVERLOADS = ("aten::upsample_linear1d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size, align_corners, scales=None):
    return resample(self, output_size, (scales,), "linear", align_corners)
