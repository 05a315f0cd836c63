"""Key and counter for random kernels, taken from the call's generator as a pair of Python ints.

A wrapper that draws has a keyword-only parameter `philox = (seed, offset)`. `seed` is Philox's key: 64 bits as
a signed integer. `offset` fills the counter's low two words, and the element's index fills its high words. A
call therefore takes one offset regardless of its size, and no two calls use the same counter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

Philox: TypeAlias = tuple[int, int]  # seed, offset

# Taken before another kernel replaces it. A torch without `get_kernel` accepts no kernels for the CPU.
_RANDOM: Any = torch.library.get_kernel("aten::random_", "CPU") if hasattr(torch.library, "get_kernel") else None
_STEP = 4  # a call advances the generator's offset, which counts 32-bit words, by this


def draw(generator: torch.Generator | None, device: str, index: int | None = None) -> Philox:
    """Return the generator's next (seed, offset) pair, and advance the generator.

    Args:
        generator: The generator; None for the device's default.
        device: Device type.
        index: Device index; None for the current device.

    Returns:
        If the generator consists of a key and an offset, as on CUDA, that key and offset. ATen's own kernels
            arrange their counters in the same way (curand: subsequence above offset), so their counters and
            these never coincide. For other generators, such as the CPU's, which also serves `sim`, the key is a
            63-bit number drawn from it and the offset is 0. Restoring a saved generator state reproduces the
            same numbers.
    """
    generator = generator if generator is not None else _default(device, index)
    if generator.device.type == "cpu":
        return _number(generator), 0
    seed, offset = generator.initial_seed(), generator.get_offset()
    generator.set_offset(offset + _STEP)
    return seed - (1 << 64) * (seed >> 63), offset // _STEP


def _number(generator: torch.Generator) -> int:
    """Draw 63 bits from a CPU generator with ATen's own kernel, even if another kernel serves `random_`."""
    number = torch.empty((), dtype=torch.int64)
    if _RANDOM is None:
        return int(number.random_(generator=generator))
    return int(_RANDOM.call_boxed(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), number, generator=generator))


def bound(wrapper: Callable[..., Any], philox: Sequence[int] | None) -> Callable[..., Any]:
    """Bind the key and counter to the wrapper, if they are given."""
    return wrapper if philox is None else partial(wrapper, philox=tuple(philox))


def _default(device: str, index: int | None) -> torch.Generator:
    if device == "cpu":
        return torch.default_generator
    module = torch.get_device_module(device)
    generator: torch.Generator = module.default_generators[module.current_device() if index is None else index]
    return generator
