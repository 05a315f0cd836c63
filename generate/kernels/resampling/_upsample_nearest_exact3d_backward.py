"""aten::_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float?
    scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor

Result o is input element floor((o + 0.5) * step) along each axis. The gradient of an element is gathered from
the results that read it.
"""

from blocks.resampling import resample_backward

OVERLOADS = ("aten::_upsample_nearest_exact3d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, output_size, input_size, scales_d=None, scales_h=None, scales_w=None):
    return resample_backward(
        grad_output, output_size, input_size, (scales_d, scales_h, scales_w), "exact", like_gradient=False
    )
