"""Tensor subclasses of PyTorch and of users on the device `sim`, whose tensors are a Python subclass themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from types import new_class
from typing import Any

import torch
from torch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter


def install(tensors: type[torch.Tensor]) -> None:
    """Let `as_subclass` and the parameters of lazy modules take the device's tensors."""
    tensors.as_subclass = _as_subclass(tensors)  # type: ignore[method-assign, assignment]
    for cls in (UninitializedParameter, UninitializedBuffer):
        cls.__new__ = _new(cls.__new__, tensors)  # type: ignore[method-assign]


def _new(usual: Callable[..., Any], tensors: type[torch.Tensor]) -> Callable[..., Any]:
    """Return the constructor of uninitialized tensors, for this device as for others."""

    signature = inspect.signature(usual)

    @wraps(usual)
    def new(cls: Any, *args: Any, **options: Any) -> Any:
        values = signature.bind(cls, *args, **options)
        values.apply_defaults()
        data = torch.empty(0, device=values.arguments["device"], dtype=values.arguments["dtype"])
        if not isinstance(data, tensors):
            return usual(cls, *args, **options)
        tensor: Any = _become(data.requires_grad_(values.arguments["requires_grad"]), _combined(cls, tensors))
        if "persistent" in values.arguments:
            tensor.persistent, tensor._is_buffer = values.arguments["persistent"], True
        return tensor

    return new


def _as_subclass(tensors: type[torch.Tensor]) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    def as_subclass(self: torch.Tensor, cls: Any) -> torch.Tensor:
        """Return an alias of the tensor, differentiable, as an instance of a subclass."""
        if cls is torch.Tensor:
            cls = tensors
        return _become(self.view_as(self), _combined(cls, tensors))

    return as_subclass


def _become(tensor: Any, cls: Any) -> torch.Tensor:
    tensor.__class__ = cls
    if issubclass(cls, Parameter):
        tensor._is_param = True
    return tensor  # type: ignore[no-any-return]


@cache
def _combined(cls: Any, tensors: type[torch.Tensor]) -> Any:
    """Return a class that is both a subclass of a user's, or PyTorch's, and the device's tensor."""
    if issubclass(cls, tensors):
        return cls
    members: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if hasattr(cls, "cls_to_become"):  # what a lazy parameter is once its shape is known
        members["cls_to_become"] = tensors
    combined: Any = new_class(cls.__name__, (cls, tensors), exec_body=lambda namespace: namespace.update(members))
    # set afterwards, because PyTorch replaces the inherited one in classes that have a __torch_dispatch__
    combined.__torch_function__ = classmethod(cls.__torch_function__.__func__)
    return combined
