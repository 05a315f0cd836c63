"""Byte ranges of live storages, accessed without a copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Span:
    """Bytes [lo, lo + nbytes) of a live storage."""

    storage: torch.UntypedStorage
    lo: int
    nbytes: int
    device: torch.device

    def raw(self) -> torch.Tensor:
        """Return the bytes as a uint8 tensor [nbytes] that shares the storage."""
        empty = torch.empty(0, dtype=torch.uint8, device=self.device)
        return empty.set_(self.storage, self.lo, (self.nbytes,), (1,))

    def host(self) -> memoryview:
        """Return the bytes in host memory: a view if the storage is on the CPU, otherwise a copy."""
        if not self.nbytes:
            return memoryview(b"")
        if self.device.type == "cpu":
            return np.asarray(_HostSpan(self.storage, self.lo, self.nbytes)).data
        return np.asarray(self.raw().cpu()).data


class _HostSpan:
    """Bytes of a storage in host memory, as an array interface for NumPy that keeps the storage alive.

    `Tensor.numpy()` would work too, but it makes the storage unresizable, so a later `resize_` in the user's program
    would fail.
    """

    def __init__(self, storage: torch.UntypedStorage, lo: int, nbytes: int) -> None:
        self.storage = storage
        address = (storage.data_ptr() + lo, True)  # read-only
        self.__array_interface__ = {"data": address, "shape": (nbytes,), "typestr": "|u1", "version": 3}
