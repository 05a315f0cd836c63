"""Matrix products fused with element-wise operators on the result."""

import math

import torch
from blocks.fused_elements import fused_elements, lying
from blocks.matmul import matmul

__all__ = ["ended_product"]


def ended_product(function, product, operands, shape, dtypes, orders):
    """Return new tensors with the values of function(tile, *operand tiles) for a matrix product.

    It is one launch if the operands are contiguous like the product, with at most two operands and two results.
    Otherwise the product is computed first, in the compute type, and a second launch applies the function.

    Args:
        function: Returns a tuple with a value for each result.
        product: Arguments for `matmul`: a, b, bias, beta and alpha.
        operands: Tensors with as many elements as `shape`.
        shape: [M, N], or a shape with as many elements or to which the product broadcasts.
        dtypes: Dtype for each result.
        orders: For each result, the indices of the operands that set its memory order; -1 is the product.

    Returns:
        A tuple of tensors.
    """
    a, b, *_ = product
    size = a.shape[0], b.shape[1]
    alone = size[0] * size[1] == math.prod(shape)  # otherwise the product is broadcast
    if alone and len(operands) < 3 and len(dtypes) < 3 and all([t.is_contiguous() for t in operands]):
        x, y = [t.view(size) for t in operands] + [None] * (2 - len(operands))
        second = torch.empty(size, dtype=dtypes[1], device=a.device) if len(dtypes) == 2 else None
        first = matmul(*product, (function, x, y, second), dtypes[0])
        return tuple([t.view(shape) for t in (first, second) if t is not None])
    tile = matmul(*product, dtype=torch.float64 if a.dtype == torch.float64 else torch.float32)
    tile = tile.view(shape) if alone else tile.expand(shape)
    known = (*operands, tile)
    outs = tuple([lying(shape, d, [known[k] for k in order]) for d, order in zip(dtypes, orders, strict=True)])
    fused_elements(function, (tile, *operands, *[tile] * (2 - len(operands))), outs)
    return outs
