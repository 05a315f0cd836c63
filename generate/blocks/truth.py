"""Reductions `any` and `all`."""

import torch
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.reduction import reduce


def truth(kind, x, dim, keepdim):
    """Return the largest ("max", any) or least ("min", all) truth value along dim.

    `dim` is an integer, several, an empty list for none, or None for all. The result is bool, or uint8 for
    uint8 input.
    """
    dtype = torch.uint8 if x.dtype == torch.uint8 else torch.bool
    if isinstance(dim, int):
        dim = [dim]
    if dim is not None and len(dim) == 0 and x.dim():
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
        return elementwise(identity, x, common=torch.bool, out=out)
    return reduce(kind, [x], dim, keepdim, dtype=dtype, common=torch.bool)
