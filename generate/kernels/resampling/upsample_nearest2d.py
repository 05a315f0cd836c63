"""aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor

Result o is input element floor(o * step) along each axis.
"""

from blocks.resampling import resample

OVERLOADS = ("aten::upsample_nearest2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "uint8")


def wrapper(self, output_size, scales_h=None, scales_w=None):
    return resample(self, output_size, (scales_h, scales_w), "nearest")
