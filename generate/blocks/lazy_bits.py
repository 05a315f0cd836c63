"""Resolve PyTorch's conjugate and negative bits: copy a lazily conjugated or negated view."""

import torch
import triton
from blocks.complex_numbers import complex_elementwise, conjugate, convert_into, parts_of
from blocks.tiles import in_tiles

__all__ = ["has_bits", "resolve_into", "resolved"]


@triton.jit
def opposite(x):
    return x * -1.0 if x.dtype.is_floating() else -x


@triton.jit
def complex_opposite(a, b):
    return a * -1.0, b * -1.0


@triton.jit
def opposite_conjugate(a, b):
    return a * -1.0, b


def has_bits(t):
    """Return True if a tensor has the conjugate or the negative bit."""
    return t.is_conj() or t.is_neg()


def stored(t):
    """Return a view without either bit; its elements are the values in memory."""
    t = t.conj() if t.is_conj() else t
    return t._neg_view() if t.is_neg() else t


def resolve_into(out, value):
    """Copy a broadcast tensor into `out` and return it; both may have either bit.

    Values are converted before they are negated, as in ATen.
    """
    conjugated, negated = out.is_conj() != value.is_conj(), out.is_neg() != value.is_neg()
    target, source = stored(out), stored(value)
    if not out.is_complex() and negated:
        real = parts_of(source)[0]
        wraps = real.is_floating_point() and out.dtype == torch.uint8  # convert through int64, as `fill` does
        in_tiles(opposite, real, common=torch.int64 if wraps else out.dtype, out=target)
    elif out.is_complex() and (conjugated or negated):
        opposites = complex_opposite if not conjugated else opposite_conjugate
        complex_elementwise(opposites if negated else conjugate, source, dtype=out.dtype, out=target)
    else:
        convert_into(target, source)
    return out


def resolved(t):
    """Return the tensor itself if it has neither bit, else a copy without them."""
    return resolve_into(torch.empty_like(t), t) if has_bits(t) else t
