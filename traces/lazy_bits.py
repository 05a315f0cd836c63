"""Lazy tensor bits (conjugation, negation, zero), and the operators that see them unresolved."""

from __future__ import annotations

from functools import cache

import torch
from torch._ops import OpOverload

from traces.overloads import name_of

_NO_BITS: frozenset[str] = frozenset()


def lazy_bits(t: torch.Tensor) -> frozenset[str]:
    """Return the lazy bits of a strided tensor, which make its values differ from its memory.

    - `conj`: the memory holds the conjugates.
    - `neg`: the memory holds the negatives.
    - `zero`: there is no memory, and all values are 0.

    The dispatcher resolves these bits for all but a few operators (`sees_lazy_bits`).
    """
    if t.is_conj() or t.is_neg() or t._is_zerotensor():
        bits = (("conj", t.is_conj()), ("neg", t.is_neg()), ("zero", t._is_zerotensor()))
        return frozenset(name for name, is_set in bits if is_set)
    return _NO_BITS


@cache
def sees_lazy_bits(op: OpOverload) -> bool:
    """Return True if the operator's calls can reach a backend with unresolved lazy bits."""
    return bool(seen_bits(op))


@cache
def seen_bits(op: OpOverload) -> frozenset[str]:
    """Return the lazy bits (see `lazy_bits`) that the dispatcher does not resolve for the operator."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    passes_on = torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough
    name, keys = name_of(op), {"conj": "Conjugate", "neg": "Negative", "zero": "ZeroTensor"}
    return frozenset(bit for bit, key in keys.items() if has_kernel(name, key) and passes_on(name, key))
