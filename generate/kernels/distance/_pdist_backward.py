"""aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor"""

from blocks.distances import distances_backward

OVERLOADS = ("aten::_pdist_backward",)
DTYPES = ("float32", "float64")


def wrapper(grad, self, p, pdist):
    if self.dim() != 2 or not self.is_contiguous() or not pdist.is_contiguous():
        raise RuntimeError(f"distances of pairs of {tuple(self.shape)} with strides {self.stride()}")
    return distances_backward(grad, self, self, p, pdist, pairs=True)
