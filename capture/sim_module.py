"""What PyTorch asks of device `sim` itself: how many there are, its generator, its type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Guard(torch._C._acc.DeviceGuard):
    """Tells autograd's engine the type of the device.

    The engine asks while a Python exception passes through its C++ frames, too. Python then fails every lookup that
    does not succeed in the instance itself, and the engine ends the process, hence an attribute and no method.
    """

    def __init__(self) -> None:
        super().__init__()
        device_type = torch._C._autograd.DeviceType.PrivateUse1
        self.__dict__["type_"] = lambda: device_type


class Module:
    """`torch.sim`, what PyTorch asks of the module of a device. One generator serves host and device: the CPU's."""

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
        """There is one."""
        yield

    def set_device(self, device: Any) -> None:
        """Nothing to choose: there is one device."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Nothing more to do: `torch.manual_seed` has set the CPU's generator."""

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def empty_cache(self) -> None:
        """Nothing is cached."""

    def synchronize(self, device: Any = None) -> None:
        """Nothing is asynchronous here."""
