"""Whether any or all of several elements are not zero."""

import torch
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.reduction import reduce


def truth(kind, x, dim, keepdim):
    """The largest ("max") or least ("min") of truths. dim: an integer, several, none at all, or None for all."""
    dtype = torch.uint8 if x.dtype == torch.uint8 else torch.bool
    if isinstance(dim, int):
        dim = [dim]
    if dim is not None and len(dim) == 0 and x.dim():
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
        return elementwise(identity, x, common=torch.bool, out=out)
    return reduce(kind, [x], dim, keepdim, dtype=dtype, common=torch.bool)
