"""aten::cholesky(Tensor self, bool upper=False) -> Tensor

Matrices without elements are contiguous.
"""

import torch
from blocks.cholesky import cholesky_factor
from blocks.factorization import check_info
from blocks.substitution import square_rows

OVERLOADS = ("aten::cholesky",)
DTYPES = ("float32", "float64")


def wrapper(self, upper=False):
    square_rows(self, "cholesky")
    if not self.numel():
        return torch.empty(self.shape, dtype=self.dtype, device=self.device)
    rooted, info = cholesky_factor(self, upper, "cholesky")
    check_info(info, "cholesky")
    return rooted
