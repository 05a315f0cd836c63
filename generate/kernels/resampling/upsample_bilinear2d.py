"""aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float?
    scales_w=None) -> Tensor

The interpolation weights are computed axis by axis, in fp32 (fp64 for fp64).
"""

from blocks.resampling import resample

OVERLOADS = ("aten::upsample_bilinear2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size, align_corners, scales_h=None, scales_w=None):
    return resample(self, output_size, (scales_h, scales_w), "linear", align_corners)
