"""aten::_pdist_forward(Tensor self, float p=2.) -> Tensor"""

from blocks.distances import distances

OVERLOADS = ("aten::_pdist_forward",)
DTYPES = ("float32", "float64")


def wrapper(self, p=2.0):
    if self.dim() != 2 or not self.is_contiguous():
        raise RuntimeError(f"distances of pairs of {tuple(self.shape)} with strides {self.stride()}")
    return distances(self, self, p, pairs=True)
