"""Philox 4x32-10, a counter-based random generator, on the host.

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011, section 3.3 and figure 4.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from verify.contract.random_state import Philox

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"  # of 32 bits each

_LOW = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10


def philox(key: int, low: int, high: Words) -> Words:
    """The four words, [n, 4], at each of n counters. key, low: 64 bits each; high: [n], their upper 64 bits."""
    k0, k1 = _halves(np.uint64(key % (1 << 64)))
    c0, c1 = (np.broadcast_to(word, high.shape) for word in _halves(np.uint64(low)))
    c2, c3 = _halves(high)
    for _ in range(_ROUNDS):
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & _LOW, (first >> 32) ^ c3 ^ k1, first & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return np.stack([c0, c1, c2, c3], -1)


def kept(pair: Philox, shape: tuple[int, int, int], dropout_p: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which elements of matrices, [heads, rows, columns], attention's dropout keeps.

    Forward and backward are kernels of their own that have to drop the same, so this is fixed: element (head, row,
    column) stays where word column % 4 at counter (offset, (head * rows + row) * ceil(columns / 4) + column // 4), with
    key `seed`, as a fraction of 2^32, is less than 1 - dropout_p.
    """
    heads, rows, columns = shape
    groups = math.ceil(columns / 4)
    words = philox(*pair, np.arange(heads * rows * groups, dtype=np.uint64))
    return (words < math.ceil((1 - dropout_p) * 2**32)).reshape(heads, rows, 4 * groups)[:, :, :columns]


def _halves(x: Any) -> tuple[Any, Any]:
    return x & _LOW, x >> np.uint64(32)
