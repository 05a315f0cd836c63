"""aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) ->
    Tensor

Interpolation is linear (0), nearest (1) or cubic (2), with taps along each axis around the coordinate.
Padding outside the input is zeros (0), the border element (1), or a reflection (2).
"""

from blocks.grids import grid_sampler

OVERLOADS = ("aten::grid_sampler_3d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, grid, interpolation_mode, padding_mode, align_corners):
    return grid_sampler(input, grid, 3, interpolation_mode, padding_mode, align_corners)
