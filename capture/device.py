"""What a GPU computes of contents where they lie, so that only new ones are copied to the host."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import torch

_MEASURED = frozenset(
    {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
    | {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128}
)

Hash: TypeAlias = tuple[int, int, int, int]  # length, word size and two 64-bit sums


@cache
def compiles() -> bool:
    """Whether Triton compiles kernels in this process. With TRITON_INTERPRET=1 it would run them on the host instead,
    an element at a time: contents are then copied there whole, and looked at by other means."""
    import triton.language

    return type(triton.language.softmax).__name__ != "InterpretedFunction"  # what was decided when it was imported


def hashes(contents: list[torch.Tensor]) -> list[Hash]:
    """Of uint8 tensors that are contiguous. Waits for the device, once for all of them."""
    if not contents:
        return []
    from capture.device_kernels import hash_into, word_size

    by_device: dict[torch.device, list[int]] = defaultdict(list)
    for i, raw in enumerate(contents):
        by_device[raw.device].append(i)
    found: dict[int, Hash] = {}
    for device, members in by_device.items():
        with torch.cuda.device(device):
            sums = torch.zeros((len(members), 2), dtype=torch.int64, device=device)
            for row, i in zip(sums, members, strict=True):
                hash_into(row, contents[i])
        for i, (first, second) in zip(members, sums.tolist(), strict=True):
            found[i] = (contents[i].numel(), word_size(contents[i]), first, second)
    return [found[i] for i in range(len(contents))]


@dataclass(frozen=True, slots=True)
class DeviceMoments:
    """Moments of `count` elements, as `traces.fingerprint.moments` defines them, that a device is still computing."""

    count: int
    sums: torch.Tensor  # float64[3], pinned
    ready: torch.cuda.Event

    def wait(self) -> list[float]:
        """Mean, mean |x| and max |x|."""
        self.ready.synchronize()
        return from_sums(self.count, self.sums)


def start_moments(t: torch.Tensor) -> DeviceMoments | None:
    """Begin to compute the moments of a tensor on a GPU; None of what has none, or of a rare dtype, or if it cannot."""
    if not t.is_cuda or t.dtype not in _MEASURED or not t.numel() or not compiles():
        return None
    from capture.device_kernels import moments_into

    with torch.no_grad(), torch.cuda.device(t.device):
        flat = t.detach().resolve_conj().resolve_neg()
        flat = (torch.view_as_real(flat) if flat.is_complex() else flat).contiguous().reshape(-1)
        sums = torch.zeros(3, dtype=torch.float64, device=t.device)
        moments_into(sums, flat)
        host = torch.empty(3, dtype=torch.float64, pin_memory=True)
        host.copy_(sums, non_blocking=True)
        ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
        ready.record()
    return DeviceMoments(flat.numel(), host, ready)


def from_sums(count: int, sums: torch.Tensor) -> list[float]:
    """The moments of which `moments_into` gave the sums."""
    total, absolute, greatest = sums.tolist()
    return [total / count, absolute / count, math.nan if math.isnan(absolute) else greatest]
