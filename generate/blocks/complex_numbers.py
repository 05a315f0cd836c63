"""Complex numbers as interleaved (re, im) pairs.

Their parts are strided views. Every element-wise function takes the parts of its operands and returns the parts
of its result.
"""

import torch
import triton
from blocks.creation import fill
from blocks.elementwise import elementwise
from blocks.offsets import empty_result

__all__ = ["as_reals", "complex_elementwise", "complex_product", "conjugate", "convert_into", "parts_of"]


@triton.jit
def complex_product(a, b, c, d):
    """Return the real and imaginary part of (a + ib) (c + id)."""
    return a * c - b * d, a * d + b * c


@triton.jit
def conjugate(a, b):
    """Return the parts of the conjugate."""
    return a, b * -1.0


@triton.jit
def either_nonzero(a, b):
    return (a != 0) | (b != 0)


def as_reals(t):
    """Return a complex tensor [...] as a real view [..., 2], and any other tensor unchanged."""
    return torch.view_as_real(t) if t.is_complex() else t


def parts_of(x):
    """Return the real and imaginary part as views; for a real tensor or number, return itself and 0."""
    if isinstance(x, torch.Tensor) and x.is_complex():
        pairs = torch.view_as_real(x)
        return pairs.select(-1, 0), pairs.select(-1, 1)
    return (x.real, x.imag) if isinstance(x, complex) else (x, 0)


def complex_elementwise(function, *operands, dtype, out=None):
    """Compute function(re, im of each operand) -> (re, im) element by element.

    Args:
        function: Triton function on real parts.
        *operands: Tensors, which are broadcast, and numbers; at least one is complex.
        dtype: Complex dtype of the result.
        out: Result tensor, or None for a new one.

    Returns:
        The complex result.
    """
    if out is None:
        tensors = torch.broadcast_tensors(*[x for x in operands if isinstance(x, torch.Tensor)])
        out = empty_result(list(tensors), dtype)
    parts = [part for x in operands for part in parts_of(x)]
    elementwise(function, *parts, common=dtype.to_real(), out=parts_of(out))
    return out


def convert_into(out, value):
    """Fill `out` with a number or a broadcast tensor, if either side is complex, and return it.

    A real value has an imaginary part of 0. A real `out` receives only the real part, but a complex number is False
    only if both parts are 0.
    """
    real, imaginary = parts_of(value)
    if out.dtype == torch.bool:
        return elementwise(either_nonzero, real, imaginary, out=out)
    if not out.is_complex():
        return fill(out, real)
    for part, source in zip(parts_of(out), (real, imaginary), strict=True):
        fill(part, source)
    return out
