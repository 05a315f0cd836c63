"""Where random kernels get their key and counter: from the generator of the call, as a pair of Python ints.

A wrapper that draws has a keyword-only parameter `philox = (seed, offset)`. seed is Philox's key, 64 bits as a signed
integer. offset is the counter's low two words; the element's index goes into its high ones, so that a call takes one
offset whatever its size, and no two calls use the same counter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

Philox: TypeAlias = tuple[int, int]  # seed, offset

# before any is registered in its place; a torch without `get_kernel` takes no kernels for the CPU
_RANDOM: Any = torch.library.get_kernel("aten::random_", "CPU") if hasattr(torch.library, "get_kernel") else None
_STEP = 4  # by which a call moves the offset of a generator, which counts 32-bit words


def draw(generator: torch.Generator | None, device: str, index: int | None = None) -> Philox:
    """The next pair of a generator, by default of the device's own; the generator moves on. device: its type.

    Of a generator that is a key and an offset, as CUDA's, these; ATen's own kernels lay their counters out alike
    (curand: subsequence above offset), so that theirs and these never meet. Of any other, as the CPU's, which serves
    `sim` too, a key of 63 bits that it draws. What saves and restores its state gets the same numbers again.
    """
    generator = generator if generator is not None else _default(device, index)
    if generator.device.type == "cpu":
        return _number(generator), 0
    seed, offset = generator.initial_seed(), generator.get_offset()
    generator.set_offset(offset + _STEP)
    return seed - (1 << 64) * (seed >> 63), offset // _STEP


def _number(generator: torch.Generator) -> int:
    """63 bits that a generator of the CPU draws, by ATen's own kernel, also where another one answers for `random_`."""
    number = torch.empty((), dtype=torch.int64)
    if _RANDOM is None:
        return int(number.random_(generator=generator))
    return int(_RANDOM.call_boxed(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), number, generator=generator))


def bound(wrapper: Callable[..., Any], philox: Sequence[int] | None) -> Callable[..., Any]:
    """The wrapper with its key and counter, if it takes them."""
    return wrapper if philox is None else partial(wrapper, philox=tuple(philox))


def _default(device: str, index: int | None) -> torch.Generator:
    if device == "cpu":
        return torch.default_generator
    module = torch.get_device_module(device)
    found: torch.Generator = module.default_generators[module.current_device() if index is None else index]
    return found
