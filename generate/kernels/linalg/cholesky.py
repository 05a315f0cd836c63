"""aten::cholesky(Tensor self, bool upper=False) -> Tensor

A tensor without elements, square or not, returns a contiguous empty tensor with the same shape.
"""

import torch
from blocks.cholesky import cholesky_factor
from blocks.factorization import check_info
from blocks.substitution import square_rows

OVERLOADS = ("aten::cholesky",)
DTYPES = ("float32", "float64")


def wrapper(self, upper=False):
    if not self.numel():
        return torch.empty(self.shape, dtype=self.dtype, device=self.device)
    square_rows(self, "cholesky")
    factor, info = cholesky_factor(self, upper, "cholesky")
    check_info(info, "cholesky")
    return factor
