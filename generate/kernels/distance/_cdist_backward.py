"""aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor

Returns the gradient with respect to x1, with the broadcast batch dimensions.
"""

from blocks.distances import distances_backward

OVERLOADS = ("aten::_cdist_backward",)
DTYPES = ("float32", "float64")


def wrapper(grad, x1, x2, p, cdist):
    return distances_backward(grad, x1, x2, p, cdist)
