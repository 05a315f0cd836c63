"""Lay out argument rows gigabytes apart, like rows in a slice of a large tensor, so that offsets need 64 bits.

The gaps between rows are only reserved address space. A process reserves it before it is confined, and its
children inherit it. Pages are allocated only for the rows themselves.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Mapping
from typing import Any

import torch

RESERVED = 1 << 40  # bytes
WIDE = 1 << 31  # first integer that does not fit into int32
_MAP_NORESERVE = 0x4000  # linux/mman.h; Python has a name for it since 3.13


class Far:
    """Reserved address space, and the part that the present call uses."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None
        self._taken = 0

    def reserve(self) -> None:
        """Reserve the address space; if it is limited, nothing is reserved and `spread` changes nothing."""
        try:
            self._memory = mmap.mmap(-1, RESERVED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        except OSError:
            return

    def spread(self, arguments: Mapping[str, Any], how: str, names: Collection[str], dim: int) -> dict[str, Any]:
        """Return the arguments with a new layout for every named tensor with two dense rows or more along `dim`.

        Args:
            arguments: Arguments by name.
            how: `apart` puts WIDE elements between neighbouring rows; `across` puts them between the first row
                and the last.
            names: Arguments that may have gaps between their rows.
            dim: Dimension along which the rows lie.
        """
        self._taken = 0
        if self._memory is not None:
            self._memory.madvise(mmap.MADV_DONTNEED)
        return {name: self._changed(value, how, dim) if name in names else value for name, value in arguments.items()}

    def _changed(self, value: Any, how: str, dim: int) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._changed(v, how, dim) for v in value)
        if not isinstance(value, torch.Tensor) or self._memory is None or not _has_rows(value, dim):
            return value
        rows, inner = value.shape[dim], value.select(dim, 0).numel()
        gap = WIDE if how == "apart" else WIDE // (rows - 1)
        stride = (max(gap, inner) + 31) // 16 * 16
        count = stride * (rows - 1) + inner
        nbytes = count * value.element_size()
        if self._taken + nbytes > RESERVED:
            return value
        memory = torch.frombuffer(self._memory, dtype=value.dtype, count=count, offset=self._taken)
        # Leave at least one unused page between two tensors.
        self._taken += (nbytes // mmap.PAGESIZE + 2) * mmap.PAGESIZE
        strides = [stride if d == dim else old for d, old in enumerate(value.stride())]
        return memory.as_strided(value.shape, strides).copy_(value)

    def gather(self, originals: Mapping[str, Any], spread: Mapping[str, Any]) -> None:
        """Copy the present values in the spread arguments back to the original ones."""
        for name, value in originals.items():
            targets = value if isinstance(value, list | tuple) else [value]
            sources = spread[name] if isinstance(value, list | tuple) else [spread[name]]
            for target, source in zip(targets, sources, strict=True):
                if target is not source:
                    target.copy_(source)


def _has_rows(t: torch.Tensor, dim: int) -> bool:
    plain = t.layout is torch.strided and not t.is_conj() and not t.is_neg()
    rows = plain and t.dim() > dim and t.shape[dim] > 1 and t.stride(dim) > 0 and t.numel() > 0
    return rows and t.select(dim, 0).is_contiguous()


far = Far()
