"""aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float?
    scales_w=None) -> Tensor

The axes are resampled one after the other, in fp32 (fp64 for fp64).
"""

from blocks.antialiased_cubic import antialias_cubic

OVERLOADS = ("aten::_upsample_bicubic2d_aa",)
DTYPES = ("float32", "float64")


def wrapper(self, output_size, align_corners, scales_h=None, scales_w=None):
    return antialias_cubic(self, output_size, (scales_h, scales_w), align_corners)
