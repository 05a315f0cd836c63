"""Arguments whose rows lie gigabytes apart, as rows of a slice of a large tensor do, so that offsets need 64 bits.

The memory between the rows is address space alone, which a process of this mode reserves before it is confined; its
children inherit it. A page is taken where a row lies.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Any

import torch

RESERVED = 1 << 40  # bytes
WIDE = 1 << 31  # the first number that an int32 does not hold
_MAP_NORESERVE = 0x4000  # linux/mman.h; Python names it from 3.13 on


class Far:
    """The memory reserved, and what of it the present call has."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._taken = 0

    def reserve(self) -> None:
        """Where address space is limited there is none, and `spread` changes nothing."""
        try:
            self._memory = mmap.mmap(-1, RESERVED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        except OSError:
            return

    def spread(self, arguments: Mapping[str, Any], how: str) -> dict[str, Any]:
        """The same with every contiguous tensor of two rows or more laid out anew.

        how: `apart`, with WIDE elements from each row to the next, or `across`, from the first row to the last.
        """
        self._taken = 0
        if self._memory is not None:
            self._memory.madvise(mmap.MADV_DONTNEED)
        return {name: self._changed(value, how) for name, value in arguments.items()}

    def _changed(self, value: Any, how: str) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._changed(v, how) for v in value)
        if not isinstance(value, torch.Tensor) or self._memory is None or not _has_rows(value):
            return value
        rows, inner = value.shape[0], value[0].numel()
        gap = WIDE if how == "apart" else WIDE // (rows - 1)
        stride = (max(gap, inner) + 31) // 16 * 16
        count = stride * (rows - 1) + inner
        nbytes = count * value.element_size()
        if self._taken + nbytes > RESERVED:
            return value
        memory = torch.frombuffer(self._memory, dtype=value.dtype, count=count, offset=self._taken)
        self._taken += (nbytes // mmap.PAGESIZE + 2) * mmap.PAGESIZE
        return memory.as_strided(value.shape, (stride, *value.stride()[1:])).copy_(value)

    def gather(self, given: Mapping[str, Any], spread: Mapping[str, Any]) -> None:
        """Write to the arguments that were given what those that were spread hold now."""
        for name, value in given.items():
            several = value if isinstance(value, list | tuple) else [value]
            others = spread[name] if isinstance(value, list | tuple) else [spread[name]]
            for own, other in zip(several, others, strict=True):
                if own is not other:
                    own.copy_(other)


def _has_rows(t: torch.Tensor) -> bool:
    plain = t.layout is torch.strided and not t.is_conj() and not t.is_neg()
    return plain and t.dim() > 0 and t.shape[0] > 1 and t.numel() > 0 and t.is_contiguous()


far = Far()
