"""aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float?
    scales_h=None, float? scales_w=None) -> Tensor

The interpolation weights are computed axis by axis, in fp32 (fp64 for fp64).
"""

from blocks.resampling import resample

OVERLOADS = ("aten::upsample_trilinear3d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size, align_corners, scales_d=None, scales_h=None, scales_w=None):
    return resample(self, output_size, (scales_d, scales_h, scales_w), "linear", align_corners)
