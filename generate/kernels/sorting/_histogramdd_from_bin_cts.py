"""aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None,
    bool density=False) -> Tensor

Bins of one width along each dimension, between the ends that are given or those of the points. self: points [..., D];
result: the numbers of points in bins, the sums of their weights, or their density.
"""

from blocks.many_bins import even_edges, point_bins

OVERLOADS = ("aten::_histogramdd_from_bin_cts",)
DTYPES = ("float32", "float64")


def wrapper(self, bins, *, range=None, weight=None, density=False):
    return point_bins(self, even_edges(self, bins, range), weight, density)
