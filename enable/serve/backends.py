"""The PyTorch device types that kernels serve, and how kernels run on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Backend:
    """How kernels reach a device type.

    Attributes:
        key: Dispatch key under which kernels are registered; sparse calls use this name with the prefix "Sparse".
        interpreted: Run kernels in Triton's interpreter, which copies the memory of a device other than the CPU to the
            host and back for each launch.
        options: Options of a launch that does not state them itself, such as num_warps.
    """

    key: str
    interpreted: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


BACKENDS = {"cuda": Backend("CUDA"), "xpu": Backend("XPU"), "cpu": Backend("CPU", interpreted=True)}


def declare(device: str, backend: Backend) -> None:
    """Add the device type of a chip that is not in PyTorch's tree. PyTorch has room for one in each process."""
    BACKENDS[device] = backend
