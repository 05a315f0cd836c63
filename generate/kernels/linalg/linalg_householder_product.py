"""aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor"""

from blocks.householder import reflected
from blocks.substitution import column_major
from blocks.types import identical_dtypes

OVERLOADS = ("aten::linalg_householder_product",)
DTYPES = ("float32", "float64")


def wrapper(input, tau):
    identical_dtypes(input, tau)
    if input.dim() < 2 or not input.shape[-2] >= input.shape[-1] >= tau.shape[-1]:
        raise RuntimeError(
            f"linalg.householder_product: needs M >= N >= size of tau, got {tuple(input.shape)} and {tuple(tau.shape)}"
        )
    if tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(f"linalg.householder_product: tau {tuple(tau.shape)} does not fit {tuple(input.shape)}")
    return reflected(input, tau, None, column_major(input.shape, input), False)
