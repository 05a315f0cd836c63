"""aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float?
    scales=None) -> Tensor

Result o is input element floor(o * step) along each axis. The gradient of an element is gathered from the
results that read it.
"""

from blocks.resampling import resample_backward

OVERLOADS = ("aten::upsample_nearest1d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, output_size, input_size, scales=None):
    return resample_backward(grad_output, output_size, input_size, (scales,), "nearest", like_gradient=False)
