"""What keeps the recorder's own work out of the program: no mode sees it, and no code of a tensor subclass runs in it.

The recorder reads attributes of arguments, copies them and computes hashes. Other dispatch modes, such as a second
recorder, would see these calls; modes and subclasses that override functions would run at every attribute.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

function_modes = torch._C._is_torch_function_mode_enabled
_requires_grad = torch._C.TensorBase.requires_grad.__get__  # type: ignore[attr-defined]
_dispatch = torch.Tensor.__torch_dispatch__
# Types of arguments that are no subclass of a tensor, and the sequences, which may hold some.
_USUAL = frozenset({torch.Tensor, torch.nn.Parameter, int, float, bool, str, type(None), torch.dtype, torch.device})
_SEQUENCES = frozenset({list, tuple})

Aliases = list[tuple[torch.Tensor, torch.Tensor]]


class Unrecordable(Exception):  # noqa: N818 - not an error: the reason why a call is skipped
    """Why a call cannot be recorded."""


class Unseen:
    """A block in which nothing dispatches to a mode or to a subclass of the program."""

    __slots__ = ("_dispatch", "_function")

    def __enter__(self) -> None:
        self._dispatch, self._function = torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction()
        self._dispatch.__enter__()  # type: ignore[no-untyped-call]
        self._function.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._function.__exit__(*error)
        self._dispatch.__exit__(*error)


def has_subclass(values: Any) -> bool:
    """Return True if one of these arguments is a tensor of a subclass, or a sequence that holds one."""
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
    """Return the value with each tensor of a subclass replaced by a plain one of the same memory.

    A subclass may override what the recorder reads: shapes that raise, or that are not those of the memory. A subclass
    that dispatches itself, such as a device in Python, stays as it is: it has no memory to be read.

    Args:
        value: Arguments or a result of a call.
        aliases: Pairs of a tensor and the plain one that stands for it; extended by those of this value.

    Raises:
        Unrecordable: If a parameter has not been initialised, so that it has no shape.
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
    """Give the plain tensors the shapes of those that they stand for, which a call may have resized."""
    for original, alias in aliases:
        torch.Tensor.data.__set__(alias, torch.Tensor._make_subclass(torch.Tensor, original))  # type: ignore[attr-defined]
