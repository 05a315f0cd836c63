"""Estimate by Monte Carlo arithmetic how far apart two correct runs of a floating-point program are.

Kernels that add in another order round differently, so two correct implementations differ in the last bits, and
training carries the difference on. The distance is measured: the program runs with each operator's results truncated at
random (D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from traces.overloads import bind, kind, written


class Truncating(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context in which each element of a floating-point result shrinks at random, by up to eps of its dtype.

    Views, allocations and random draws stay unchanged. Elements only shrink, so results stay in the range that an
    operator guarantees, such as a sigmoid's.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        # NumPy's generator, because the library's kernels may replace PyTorch's
        self._generator = np.random.default_rng(seed)

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        arguments = bind(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if kind(func, arguments) == "compute":
            outputs = [arguments[name] for name in written(func)] or [result]
            for tensor in _floating(outputs):
                self._truncate(tensor)
        return result

    def _truncate(self, tensor: torch.Tensor) -> None:
        """Shrink each element by a random factor in place."""
        noise = torch.from_numpy(self._generator.random(tensor.numel(), dtype=np.float32)).view(tensor.shape)
        tensor.copy_(tensor * (1 - torch.finfo(tensor.dtype).eps * noise))


def _floating(value: Any) -> Iterator[torch.Tensor]:
    """Yield the strided floating-point tensors in a value."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() and value.layout is torch.strided:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _floating(item)
