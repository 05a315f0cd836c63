"""aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor"""

from blocks.distances import distances_backward, first_of_each, first_pairs, rows_of_pairs

OVERLOADS = ("aten::_pdist_backward",)
DTYPES = ("float32", "float64")


def wrapper(grad, self, p, pdist):
    rows, pairs = rows_of_pairs(self)
    points = rows.narrow(0, 0, self.shape[0])
    if p != 0:  # for p == 0 the gradient is 0 and these are not read
        grad, pdist = first_pairs(first_of_each(grad), pairs), first_pairs(pdist, pairs)
    return distances_backward(grad, rows, points, p, pdist, pairs).view(self.shape)
