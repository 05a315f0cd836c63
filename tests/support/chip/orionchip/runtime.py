"""`torch.orion`, the device module: devices, streams, memory counters and generators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from orionchip import native

default_generators = tuple(native.default_generator(index) for index in range(native.device_count))


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    """Return False: device memory is host memory, which a forked process can use."""
    return False


def device_count() -> int:
    return len(default_generators)


def _index(device: Any = None) -> int:
    """Return the index of a device, and that of the current device for None or `orion`."""
    if isinstance(device, int):
        return device if device >= 0 else current_device()
    device = torch.device("orion" if device is None else device)
    if device.type != "orion":
        raise ValueError(f"expected a device of type orion, not {device}")
    return current_device() if device.index is None else device.index


def current_device() -> int:
    return torch.accelerator.current_device_index()


def set_device(device: Any) -> None:
    torch.accelerator.set_device_index(_index(device))


class device:
    """A context with another current device."""

    def __init__(self, device: Any) -> None:
        self._index = _index(device)

    def __enter__(self) -> None:
        self._previous = torch._C._accelerator_exchangeDevice(self._index)

    def __exit__(self, *error: object) -> None:
        torch._C._accelerator_exchangeDevice(self._previous)


class device_of(device):
    """A context with the device of a tensor as the current one; unchanged if the tensor is on another device type."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == "orion" else None)


def get_device_name(device: Any = None) -> str:
    return f"orion:{_index(device)}"


def get_device_capability(device: Any = None) -> dict[str, Any]:
    return torch.accelerator.get_device_capability(_index(device))


class Stream(torch.Stream):
    """A new stream on one device."""

    def __new__(cls, device: Any = None, priority: int = 0, **fields: Any) -> Stream:
        fields = fields or {"device": torch.device("orion", _index(device)), "priority": priority}
        return super().__new__(cls, **fields)


class Event(torch.Event):
    """An event, bound to a device when a stream records it."""

    def __new__(cls, enable_timing: bool = False, **flags: bool) -> Event:
        return super().__new__(cls, device="orion", enable_timing=enable_timing, **flags)


def current_stream(device: Any = None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


def default_stream(device: Any = None) -> torch.Stream:
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=int(torch._C._autograd.DeviceType.ORION))


def set_stream(stream: torch.Stream) -> None:
    torch.accelerator.set_stream(stream)


@contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """Make a stream current, and its device; do nothing for None."""
    if stream is None:
        yield
        return
    with stream:
        yield


def synchronize(device: Any = None) -> None:
    torch.accelerator.synchronize(_index(device))


def empty_cache() -> None:
    torch.accelerator.empty_cache()


def memory_stats(device: Any = None) -> dict[str, Any]:
    return torch.accelerator.memory_stats(_index(device))


def memory_allocated(device: Any = None) -> int:
    """Return the allocated bytes; each buffer counts as a multiple of 64 bytes."""
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device: Any = None) -> int:
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device: Any = None) -> int:
    """Return the bytes in pages that hold buffers, without guard pages."""
    return torch.accelerator.memory_reserved(_index(device))


def max_memory_reserved(device: Any = None) -> int:
    return torch.accelerator.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    torch.accelerator.reset_accumulated_memory_stats(_index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of a device."""
    return torch.accelerator.get_memory_info(_index(device))


def manual_seed(seed: int) -> None:
    default_generators[current_device()].manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    for generator in default_generators:
        generator.manual_seed(seed)


def seed() -> int:
    return default_generators[current_device()].seed()


def initial_seed() -> int:
    return default_generators[current_device()].initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    return default_generators[_index(device)].get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    default_generators[_index(device)].set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(states: list[torch.Tensor]) -> None:
    for generator, state in zip(default_generators, states, strict=True):
        generator.set_state(state)


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True
