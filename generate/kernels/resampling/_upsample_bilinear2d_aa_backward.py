"""aten::_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool
    align_corners, float? scales_h=None, float? scales_w=None) -> Tensor

The gradient of an element is gathered from the results that read it.
"""

from blocks.antialiasing import antialias_backward

OVERLOADS = ("aten::_upsample_bilinear2d_aa_backward",)
DTYPES = ("float32", "float64")


def wrapper(grad_output, output_size, input_size, align_corners, scales_h=None, scales_w=None):
    return antialias_backward(grad_output, output_size, input_size, (scales_h, scales_w), align_corners)
