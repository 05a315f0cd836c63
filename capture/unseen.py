"""Isolation of the recorder's own work from the program's modes and tensor subclasses.

The recorder reads argument attributes, copies arguments and computes hashes. Without isolation, other dispatch modes,
such as a second recorder, would see these calls, and function modes and subclasses would run at every attribute access.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

function_modes = torch._C._is_torch_function_mode_enabled
_requires_grad = torch._C.TensorBase.requires_grad.__get__  # type: ignore[attr-defined]
_dispatch = torch.Tensor.__torch_dispatch__
# Argument types that are not tensor subclasses, and sequences, which may contain some.
_USUAL = frozenset({torch.Tensor, torch.nn.Parameter, int, float, bool, str, type(None), torch.dtype, torch.device})
_SEQUENCES = frozenset({list, tuple})

Aliases = list[tuple[torch.Tensor, torch.Tensor]]


class Unrecordable(Exception):  # noqa: N818 - not an error: the reason why a call is skipped
    """The reason why a call cannot be recorded."""


class Unseen:
    """A block in which nothing dispatches to the program's modes or subclasses."""

    __slots__ = ("_dispatch", "_function")

    def __enter__(self) -> None:
        self._dispatch, self._function = torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction()
        self._dispatch.__enter__()  # type: ignore[no-untyped-call]
        self._function.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._function.__exit__(*error)
        self._dispatch.__exit__(*error)


def has_subclass(values: Any) -> bool:
    """Return True if an argument is a tensor of a subclass, or a sequence that contains one."""
    for value in values:
        kind = type(value)
        if kind in _USUAL:
            continue
        if kind in _SEQUENCES:
            if has_subclass(value):
                return True
        elif isinstance(value, torch.Tensor):
            return True
    return False


def plain(value: Any, aliases: Aliases) -> Any:
    """Return the value with each subclass tensor replaced by a plain tensor over the same memory.

    A subclass may override attributes that the recorder reads: shapes may raise, or differ from those of the memory. A
    subclass with its own dispatch, such as a device in Python, is kept, because it has no memory to read.

    Args:
        value: Arguments or result of a call.
        aliases: Pairs of a tensor and the plain one that replaces it; pairs for this value are appended.

    Raises:
        Unrecordable: If a parameter is not initialised yet, so it has no shape.
    """
    if isinstance(value, torch.Tensor):
        return value if type(value) in _USUAL else _plain_tensor(value, aliases)
    if isinstance(value, list | tuple):
        return type(value)([plain(v, aliases) for v in value]) if has_subclass(value) else value
    if isinstance(value, dict):
        return {name: plain(v, aliases) for name, v in value.items()}
    return value


def _plain_tensor(t: torch.Tensor, aliases: Aliases) -> torch.Tensor:
    if isinstance(t, UninitializedTensorMixin):
        raise Unrecordable("parameters of lazy modules, not initialised yet")
    if type(t).__torch_dispatch__ is not _dispatch:
        return t
    for original, alias in aliases:
        if original is t:
            return alias
    alias = torch.Tensor._make_subclass(torch.Tensor, t, _requires_grad(t))
    aliases.append((t, alias))
    return alias


def follow(aliases: Aliases) -> None:
    """Update the plain tensors to the shapes of the tensors that they replace, which a call may have resized."""
    for original, alias in aliases:
        torch.Tensor.data.__set__(alias, torch.Tensor._make_subclass(torch.Tensor, original))  # type: ignore[attr-defined]
