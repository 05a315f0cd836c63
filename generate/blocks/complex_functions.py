"""Functions and sums of complex numbers, computed on their real and imaginary parts."""

import torch
import triton
import triton.language as tl
from blocks.complex_numbers import as_reals, convert_into, parts_of
from blocks.elementwise import elementwise
from blocks.functions import expm1, with_sign
from blocks.reduction import reduce

__all__ = ["complex_sum", "hyperbolic_pair", "of_parts"]


@triton.jit
def hyperbolic_pair(x):
    """Return cosh(x) and sinh(x) for a clamped x, and the factor by which both must still be multiplied.

    The factor is exp(|x| - limit) beyond a limit of 88 (fp32) or 709 (fp64), and 1 below. It is separate,
    because the full cosh and sinh may be too large.
    """
    size = tl.abs(x)
    most = tl.minimum(size, 709.0 if x.dtype.is_fp64() else 88.0)
    e = expm1(most)
    return 0.5 * (e + 1 + 1 / (e + 1)), with_sign(0.5 * (e + e / (e + 1)), x), tl.exp(size - most)


def of_parts(function, *parts, dtype, common=None, out=None):
    """Return function(*parts) element by element; the function is real.

    The result has this dtype, or goes to `out`, which may be complex.
    """
    if out is not None and out.is_complex():
        return convert_into(out, elementwise(function, *parts, common=common, dtype=dtype))
    return elementwise(function, *parts, common=common, dtype=dtype, out=out)


def complex_sum(x, dim, keepdim, dtype, finish=None):
    """Return the sum over `dim` (None or () for all) if the tensor or the dtype is complex.

    Each part is summed by itself and passed through `finish`. With a real dtype, only the real parts are summed.
    With bool, the result is True if an element is not 0.
    """
    if dtype == torch.bool:
        x = convert_into(torch.empty(x.shape, dtype=dtype, device=x.device), x)
    if not dtype.is_complex:
        return reduce("sum", [parts_of(x)[0]], dim, keepdim, dtype=dtype, finish=finish)
    if not x.is_complex():
        total = reduce("sum", [x], dim, keepdim, dtype=dtype.to_real(), finish=finish)
        return convert_into(torch.empty(total.shape, dtype=dtype, device=x.device), total)
    dims = [d % max(x.dim(), 1) for d in dim] if dim else list(range(max(x.dim(), 1)))
    parts = as_reals(x if x.dim() else x.view(1))
    total = reduce("sum", [parts], dims, keepdim and x.dim() > 0, dtype=dtype.to_real(), finish=finish)
    return torch.view_as_complex(total)
