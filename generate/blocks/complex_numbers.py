"""Complex numbers, as pairs of reals that lie beside each other: their parts are views, and every function that is
element by element takes the parts of its operands and returns those of its result."""

import torch
import triton
from blocks.creation import fill
from blocks.elementwise import elementwise
from blocks.offsets import empty_result

__all__ = ["as_reals", "complex_elementwise", "complex_product", "conjugate", "convert_into", "parts_of"]


@triton.jit
def complex_product(a, b, c, d):
    """(a + ib) (c + id)"""
    return a * c - b * d, a * d + b * c


@triton.jit
def conjugate(a, b):
    return a, b * -1.0


def as_reals(t):
    """Complex [...] as reals [..., 2], a view; any other tensor as it is."""
    return torch.view_as_real(t) if t.is_complex() else t


def parts_of(x):
    """The real and the imaginary part of a tensor, as views; of a real tensor or a number, itself and 0."""
    if isinstance(x, torch.Tensor) and x.is_complex():
        pairs = torch.view_as_real(x)
        return pairs.select(-1, 0), pairs.select(-1, 1)
    return (x.real, x.imag) if isinstance(x, complex) else (x, 0)


def complex_elementwise(function, *operands, dtype, out=None):
    """function(re, im of each operand) -> (re, im), element by element, of operands of which one at least is complex.

    operands: tensors, which are broadcast, and numbers. dtype: of the result, complex [...].
    """
    if out is None:
        tensors = torch.broadcast_tensors(*[x for x in operands if isinstance(x, torch.Tensor)])
        out = empty_result(list(tensors), dtype)
    parts = [part for x in operands for part in parts_of(x)]
    elementwise(function, *parts, common=dtype.to_real(), out=parts_of(out))
    return out


def convert_into(out, value):
    """`out`, filled with the elements of a tensor, which is broadcast, or with a number, where one of both is complex.

    The imaginary part of a real value is 0; that of a complex one is left out of a real result.
    """
    real, imaginary = parts_of(value)
    if not out.is_complex():
        return fill(out, real)
    for part, source in zip(parts_of(out), (real, imaginary), strict=True):
        fill(part, source)
    return out
