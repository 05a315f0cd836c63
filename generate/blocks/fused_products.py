"""Products of matrices and what is done to each element of them."""

import math

import torch
from blocks.fused_elements import fused_elements, lying
from blocks.matmul import matmul

__all__ = ["ended_product"]


def ended_product(function, product, operands, shape, dtypes, orders):
    """function(tile, *operands' tiles) of a product, a tuple of a value for each of new tensors of this shape.

    product: arguments of `matmul`: a, b, bias, beta and alpha. shape: of [M, N] or of as many elements, which operands
    have, too. orders: of each result, by the numbers of which operands its memory lies, in turn; -1 is the product's.
    It is one launch where operands lie as the matrix does, and there are two of them at most, as of results;
    else the product comes first, in the type that is computed in.
    """
    a, b, *_ = product
    size = a.shape[0], b.shape[1]
    alone = size[0] * size[1] == math.prod(shape)  # else the product itself is broadcast
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
