"""Interfaces that PyTorch requires from device `sim` itself: device count, generator, type."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch


def present(device: Any) -> torch.device:
    """Return the device with this name or index; raise RuntimeError for a `sim` with an index above 0."""
    named = torch.device("sim", device) if isinstance(device, int) else torch.device(device)
    if named.type == "sim" and named.index not in (None, 0):
        raise RuntimeError(f"{named}: invalid device ordinal; the only device is sim:0")
    return named


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
        """Do nothing but check the index, because there is only one device."""
        self.set_device(device)
        yield

    def set_device(self, device: Any) -> None:
        """Do nothing but check the index, because there is only one device; None and -1 name the current one."""
        if device not in (None, -1):
            present(device)

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
        """Do nothing but check the index, because nothing is asynchronous."""
        self.set_device(device)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return True

    def get_device_name(self, device: Any = None) -> str:
        return "sim"

    def get_device_capability(self, device: Any = None) -> dict[str, Any]:
        return {}

    def current_stream(self, device: Any = None) -> SimStream:
        return SimStream(device)

    default_stream = current_stream

    def set_stream(self, stream: Any) -> None:
        """Do nothing, because there is only one stream."""

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        """Do nothing, because there is only one stream."""
        yield

    def memory_allocated(self, device: Any = None) -> int:
        """Return 0: the device's memory is the process's own, which is not counted."""
        return 0

    max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Return no statistics, because memory is not counted."""
        return {}

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Do nothing, because memory is not counted."""

    reset_accumulated_memory_stats = reset_peak_memory_stats


class SimEvent:
    """A point in the device's only stream; nothing is asynchronous, so it is reached as soon as it is recorded."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, **options: Any) -> None:
        self._timed, self._recorded = enable_timing, 0.0

    def record(self, stream: Any = None) -> None:
        self._recorded = time.perf_counter()

    def query(self) -> bool:
        return True

    def wait(self, stream: Any = None) -> None:
        """Do nothing, because nothing is asynchronous."""

    def synchronize(self) -> None:
        """Do nothing, because nothing is asynchronous."""

    def elapsed_time(self, end_event: SimEvent) -> float:
        """Return the milliseconds between two recorded events; raise RuntimeError unless both measure time."""
        if not (self._timed and end_event._timed and self._recorded and end_event._recorded):
            raise RuntimeError("both events have to be made with enable_timing=True, and recorded")
        return 1e3 * (end_event._recorded - self._recorded)


class SimStream:
    """The device's only stream."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device, self.priority = torch.device("sim", 0), priority

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimStream)

    def __hash__(self) -> int:
        return hash(SimStream)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Do nothing, because nothing is asynchronous."""

    def record_event(self, event: SimEvent | None = None) -> SimEvent:
        event = event or SimEvent()
        event.record()
        return event

    def wait_event(self, event: SimEvent) -> None:
        """Do nothing, because nothing is asynchronous."""

    def wait_stream(self, stream: Any) -> None:
        """Do nothing, because there is only one stream."""


Module.Event, Module.Stream = SimEvent, SimStream  # type: ignore[attr-defined]
_PLAIN = torch.Generator


class _OfAnyDevice(type(_PLAIN)):  # type: ignore[misc]
    """Makes `torch.Generator("sim")` a generator of the host; every generator is an instance."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _PLAIN)

    def __call__(cls, device: Any = "cpu") -> torch.Generator:
        on_sim = present(device).type == "sim"
        return super().__call__() if on_sim else _PLAIN(device)


class SimGenerator(_PLAIN, metaclass=_OfAnyDevice):
    """A generator on the device. Its numbers are those of a host generator with the same seed."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("sim", 0)


def patch_torch() -> None:
    """Provide what PyTorch asks of a device in C++ only: `torch.Generator(device=)` and functions of accelerators."""
    torch.Generator = SimGenerator  # type: ignore[misc]
    for module in (torch.accelerator, torch.accelerator.memory):
        for name in _OF_ACCELERATORS & vars(module).keys():
            setattr(module, name, _or_sim(name, getattr(module, name)))


_OF_ACCELERATORS = {  # not current_stream: torch.compile knows that function itself, and would keep its graphs alive
    *("synchronize", "empty_cache", "set_stream", "get_device_capability", "memory_stats"),
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
    *("reset_peak_memory_stats", "reset_accumulated_memory_stats"),
}


def _or_sim(name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `torch.accelerator` that asks `torch.sim` while that is the current accelerator."""

    @wraps(usual)
    def function(*args: Any, **kwargs: Any) -> Any:
        accelerator = torch.accelerator.current_accelerator()
        ask = getattr(torch.sim, name) if accelerator is not None and accelerator.type == "sim" else usual  # type: ignore[attr-defined]
        return ask(*args, **kwargs)

    return function
