"""aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor

Result o is input element floor(o * step) along each axis.
"""

from blocks.resampling import resample

OVERLOADS = ("aten::upsample_nearest1d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "uint8")


def wrapper(self, output_size, scales=None):
    return resample(self, output_size, (scales,), "nearest")
