"""Philox 4x32-10, a counter-based random generator, on the host.

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011, section 3.3 and figure
4.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from verify.contract.random_state import Philox

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"  # 32-bit words in 64-bit elements

_LOW = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10


def philox(key: int, low: int, high: Words) -> Words:
    """Return four 32-bit words, [n, 4], for each counter.

    Args:
        key: 64-bit key.
        low: Lower 64 bits of all counters.
        high: [n], upper 64 bits of each counter.
    """
    k0, k1 = _halves(np.uint64(key % (1 << 64)))
    c0, c1 = (np.broadcast_to(word, high.shape) for word in _halves(np.uint64(low)))
    c2, c3 = _halves(high)
    for _ in range(_ROUNDS):
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & _LOW, (first >> 32) ^ c3 ^ k1, first & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return np.stack([c0, c1, c2, c3], -1)


def kept(pair: Philox, shape: tuple[int, int, int], dropout_p: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask, [heads, rows, columns], that is True for the elements that attention's dropout keeps.

    Forward and backward are separate kernels that have to drop the same elements, so the rule is fixed. Element
    (head, row, column) is kept if word column % 4 at counter (offset, (head * rows + row) * ceil(columns / 4) +
    column // 4), with key `seed`, as a fraction of 2^32, is less than 1 - dropout_p.

    Args:
        pair: Seed and offset.
        shape: Numbers of heads, rows and columns.
        dropout_p: Probability that an element is dropped.
    """
    heads, rows, columns = shape
    groups = math.ceil(columns / 4)
    words = philox(*pair, np.arange(heads * rows * groups, dtype=np.uint64))
    return (words < math.ceil((1 - dropout_p) * 2**32)).reshape(heads, rows, 4 * groups)[:, :, :columns]


def _halves(x: Any) -> tuple[Any, Any]:
    return x & _LOW, x >> np.uint64(32)
