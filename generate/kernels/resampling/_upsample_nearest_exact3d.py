"""aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None,
    float? scales_w=None) -> Tensor

Result o is input element floor((o + 0.5) * step) along each axis.
"""

from blocks.resampling import resample

OVERLOADS = ("aten::_upsample_nearest_exact3d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "uint8")


def wrapper(self, output_size, scales_d=None, scales_h=None, scales_w=None):
    return resample(self, output_size, (scales_d, scales_h, scales_w), "exact")
