"""aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor

The kernel sums squared differences, which is more accurate than ATen's matrix product. Infinities appear for
the same inputs as in that product.
"""

from blocks.distances import distances

OVERLOADS = ("aten::_euclidean_dist",)
DTYPES = ("float32", "float64")


def wrapper(x1, x2):
    return distances(x1, x2, 2.0, products=True)
