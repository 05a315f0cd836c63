"""aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None,
    bool density=False) -> Tensor[]

Along each dimension, bins have equal width. If no range is given, it extends from the smallest to the largest
coordinate.
"""

from blocks.many_bins import even_edges

OVERLOADS = ("aten::_histogramdd_bin_edges",)
DTYPES = ("float32", "float64")


def wrapper(self, bins, *, range=None, weight=None, density=False):
    return even_edges(self, bins, range)
