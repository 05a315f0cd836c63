"""aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) ->
    Tensor

Points self [..., D] are counted in bins between the given edges along each dimension. The result is the point
counts, the sums of weights, or their density.
"""

from blocks.many_bins import point_bins

OVERLOADS = ("aten::_histogramdd_from_bin_tensors",)
DTYPES = ("float32", "float64")


def wrapper(self, bins, *, weight=None, density=False):
    if any([t.dim() != 1 or t.dtype != self.dtype for t in bins]):
        raise RuntimeError(
            f"edges {[tuple(t.shape) for t in bins]}, {[t.dtype for t in bins]}, must be {self.dtype} vectors"
        )
    return point_bins(self, bins, weight, density)
