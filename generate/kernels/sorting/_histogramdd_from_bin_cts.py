"""aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None,
    bool density=False) -> Tensor

Points self [..., D] are counted in bins with equal width along each dimension. The range is the given one, or
that of the points. The result is the point counts, the sums of weights, or their density.
"""

from blocks.many_bins import even_edges, point_bins

OVERLOADS = ("aten::_histogramdd_from_bin_cts",)
DTYPES = ("float32", "float64")


def wrapper(self, bins, *, range=None, weight=None, density=False):
    return point_bins(self, even_edges(self, bins, range), weight, density)
