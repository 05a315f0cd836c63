"""aten::grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int
    padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)

The input gradient is added up with atomics in fp32 (fp64 for fp64). The grid gradient is a sum over channels.
"""

from blocks.grids import grid_sampler_gradients

OVERLOADS = ("aten::grid_sampler_2d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask):
    options = interpolation_mode, padding_mode, align_corners
    return grid_sampler_gradients(grad_output, input, grid, 2, *options, output_mask)
