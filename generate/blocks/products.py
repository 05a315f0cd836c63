"""Vector-vector and matrix-vector products as reductions that read each element once."""

import torch
import triton
from blocks.combination import product_of
from blocks.elementwise import elementwise
from blocks.reduction import reduce
from blocks.types import identical_dtypes

__all__ = ["inner_product", "matrix_by_vector"]


@triton.jit
def weighted_sum(total, bias, alpha, beta):
    return alpha * total + beta * bias


@triton.jit
def weighted_total(total, alpha):
    return alpha * total


def inner_product(x, y):
    """Return the dot product; raise RuntimeError unless both are vectors with the same length."""
    identical_dtypes(x, y)
    if x.dim() != 1 or y.dim() != 1 or x.numel() != y.numel():
        raise RuntimeError(
            f"expected two vectors with equally many elements, got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    return reduce("sum", [x, y], None, dtype=x.dtype, map=product_of)


def matrix_by_vector(matrix, vector, bias=None, beta=1, alpha=1):
    """Return beta * bias + alpha * matrix @ vector.

    `bias` is None or has one element per matrix row. Raises RuntimeError if the vector does not match the
    columns.
    """
    identical_dtypes(matrix, vector)
    dtype, (M, K) = matrix.dtype, matrix.shape
    if vector.numel() != K:
        raise RuntimeError(f"cannot multiply matrix {tuple(matrix.shape)} by vector {tuple(vector.shape)}")
    plain_sum = bias is None and alpha == 1
    half = dtype in (torch.float16, torch.bfloat16)
    narrow = dtype in (torch.uint8, torch.int8, torch.int16)
    opmath = torch.float32 if half else torch.int32 if narrow else dtype
    how = {"dtype": dtype if plain_sum else opmath, "common": dtype, "map": product_of}
    total = reduce("sum", [matrix, vector.expand(M, K)], [1], **how)
    if plain_sum:
        return total
    alpha = alpha if K else 0  # an empty sum times alpha is 0, not NaN, even if alpha is infinite
    out = torch.empty(M, dtype=dtype, device=matrix.device)
    if bias is None:
        return elementwise(weighted_total, total, numbers=(alpha,), out=out)
    return elementwise(weighted_sum, total, bias.expand(M), numbers=(alpha, beta), common=opmath, out=out)
