"""aten::upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool
    align_corners, float? scales=None) -> Tensor

The interpolation weights are computed axis by axis, in fp32 (fp64 for fp64). The gradient of an element is
gathered from the results that read it.
"""

from blocks.resampling import resample_backward

OVERLOADS = ("aten::upsample_linear1d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, output_size, input_size, align_corners, scales=None):
    return resample_backward(grad_output, output_size, input_size, (scales,), "linear", align_corners)
