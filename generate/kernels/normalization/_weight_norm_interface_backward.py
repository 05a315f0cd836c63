"""aten::_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim)
    -> (Tensor, Tensor)

With s = sum(grad_w * v / norm), the gradients are g / norm * (grad_w - v / norm * s) for v, and s for g.
"""

import torch
import triton
from blocks.arithmetic import divide
from blocks.combination import product_of
from blocks.elementwise import elementwise
from blocks.weight_norm import expect_weight_norm, norms_view, over_others

OVERLOADS = ("aten::_weight_norm_interface_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def across_direction(grad, v, g, norm, total):
    return divide(g, norm) * (grad - divide(v, norm) * divide(total, norm))


def wrapper(grad_w, saved_v, saved_g, saved_norms, dim):
    v, g = saved_v, saved_g
    common = expect_weight_norm(v, g, dim)
    if grad_w.shape != v.shape or grad_w.dtype != v.dtype or saved_norms.numel() != g.numel():
        raise RuntimeError(
            f"gradient {tuple(grad_w.shape)} and norms {tuple(saved_norms.shape)} do not fit weight {tuple(v.shape)}"
        )
    norms = norms_view(dim, v, saved_norms)
    totals = over_others("sum", [grad_w, v], dim, dtype=common, map=product_of)
    grad_v = torch.empty(v.shape, dtype=v.dtype, device=v.device)
    operands = [norms_view(dim, v, g), norms, norms_view(dim, v, totals)]
    elementwise(across_direction, grad_w, v, *operands, common=common, out=grad_v)
    grad_g = torch.empty(g.shape, dtype=g.dtype, device=g.device)
    elementwise(divide, totals.view(g.shape), saved_norms.view(g.shape), common=common, out=grad_g)
    return grad_v, grad_g
