"""aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)

Returns v * g / norm, and the norms in fp32 (fp64 for fp64).
"""

import torch
import triton
from blocks.arithmetic import divide, square
from blocks.elementwise import elementwise
from blocks.norms import square_root
from blocks.weight_norm import expect_weight_norm, norms_view, over_others

OVERLOADS = ("aten::_weight_norm_interface",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def sized(v, g, norm):
    return v * divide(g, norm)


def wrapper(v, g, dim=0):
    common = expect_weight_norm(v, g, dim)
    norms = over_others("sum", [v], dim, dtype=common, map=square, finish=square_root).view(g.shape)
    out = torch.empty(v.shape, dtype=v.dtype, device=v.device)
    elementwise(sized, v, norms_view(dim, v, g), norms_view(dim, v, norms), common=common, out=out)
    return out, norms
