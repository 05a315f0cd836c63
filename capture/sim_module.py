"""Interfaces that PyTorch requires from device `sim` itself: device count, generator, type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Guard(torch._C._acc.DeviceGuard):
    """Reports the device type to autograd's engine.

    The engine also asks while a Python exception passes through its C++ frames. Python then fails every lookup that
    does not succeed in the instance itself, and the engine ends the process. So this is an attribute, not a method.
    """

    def __init__(self) -> None:
        super().__init__()
        device_type = torch._C._autograd.DeviceType.PrivateUse1
        self.__dict__["type_"] = lambda: device_type


class Module:
    """`torch.sim`, the device module that PyTorch expects. Host and device share one generator: the CPU's."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    @contextmanager
    def device(self, device: Any) -> Iterator[None]:
        """Do nothing, because there is only one device."""
        yield

    def set_device(self, device: Any) -> None:
        """Do nothing, because there is only one device."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing, because `torch.manual_seed` has already seeded the CPU's generator."""

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def empty_cache(self) -> None:
        """Do nothing, because nothing is cached."""

    def synchronize(self, device: Any = None) -> None:
        """Do nothing, because nothing is asynchronous."""
