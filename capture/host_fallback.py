"""Run on the CPU the operators that a chip outside PyTorch's tree has no kernel for.

`enable capture --device mychip` records a model before any kernel for the chip is written. The device provides memory,
views and transfers; each operator that it refuses with NotImplementedError is computed on copies in host memory.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from capture import sim
from traces.live import tensors_in
from traces.overloads import bind, kind, written
from traces.widening import answer


def chip() -> str:
    """Return the device type of the out-of-tree device in this process; empty if there is none but `sim`."""
    name = str(torch._C._get_privateuse1_backend_name())
    return "" if name in ("privateuseone", sim.NAME) else name


def computing_on_host(device: str) -> AbstractContextManager[Any]:
    """Return a block in which the CPU computes for `sim` or a chip, whatever kernels exist."""
    if device.startswith(sim.NAME):
        return sim.executing(sim.on_cpu)
    return HostFallback() if device and device.partition(":")[0] == chip() else nullcontext()


class HostFallback(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes on the CPU the calls that the device refuses; it follows autograd into its threads."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        try:
            return func(*args, **kwargs)
        except NotImplementedError:
            device = _device(args, kwargs)
            if device is None or kind(func) == "view":
                raise
        return _on_host(device, func, args, kwargs)


def _device(args: Any, kwargs: Any) -> torch.device | None:
    """Return the device on which the call computes; None if it is not the chip."""
    named = kwargs.get("device")
    devices = [named] if isinstance(named, torch.device) else [t.device for t in tensors_in((args, kwargs))]
    return next((device for device in devices if device.type == chip()), None)


def _on_host(device: torch.device, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a call on the CPU, copy written arguments back and return its results on the device."""
    copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # argument and its copy, by the argument's identity

    def lower(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return copies.setdefault(id(value), (value, value.cpu()))[1]
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return _seeded(value) if isinstance(value, torch.Generator) else value

    results = answer(func, *tree_map(lower, (args, kwargs)))
    arguments = {id(copy): argument for argument, copy in copies.values()}
    named = bind(func, args, kwargs)
    for argument in tensors_in([named[name] for name in written(func)]):
        copy = copies[id(argument)][1]
        if copy is argument:  # in host memory already
            continue
        if argument.shape != copy.shape:
            argument.resize_(copy.shape)
        argument.copy_(copy)

    def raised(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return arguments[id(value)] if id(value) in arguments else value.to(device)

    return tree_map(raised, results)


def _seeded(generator: torch.Generator) -> torch.Generator:
    """Return a CPU generator with the next seed of the device's generator."""
    seed = generator.initial_seed()
    generator.manual_seed((seed * 6364136223846793005 + 1442695040888963407) % 2**63)  # Knuth's MMIX generator
    return torch.Generator().manual_seed(seed)
