"""Propose simpler arguments for a call, and write arguments as Python code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

Arguments = dict[str, Any]  # by schema name

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)  # sizes to try for a dimension, the smallest first


def plain(value: Any) -> Any:
    """Return a copy of an argument in which no two tensors share memory; strides are kept if no element is shared."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, _strides(value), dtype=value.dtype).copy_(value)
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def simpler(arguments: Mapping[str, Any]) -> Iterator[Arguments]:
    """Yield simpler versions of a call's arguments: fewer, then smaller, then with plain strides, dtypes and values.

    A size is replaced in all tensors and lists of sizes at once, because an operator demands that some of them agree.
    """
    for name in arguments:
        yield {other: value for other, value in arguments.items() if other != name}
    sizes = sorted({n for tensor in _tensors(arguments) for n in tensor.shape}, reverse=True)
    for size in sizes:
        smaller_sizes = sorted(n for n in {*SIZES, size // 2} if 0 < n < size)
        yield from (_mapped(arguments, _resized, size, smaller) for smaller in smaller_sizes)
    yield _mapped(arguments, _without_first_dimension)
    yield _mapped(arguments, _contiguous)
    yield _mapped(arguments, _in_float32)
    yield _mapped(arguments, _zeros)
    for name in arguments:
        yield {**arguments, **_mapped({name: arguments[name]}, _without_first_dimension)}
        yield {**arguments, **_mapped({name: arguments[name]}, _zeros)}


def is_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True if two calls differ."""
    return before.keys() != after.keys() or any(code(before[name]) != code(after[name]) for name in before)


def code(value: Any) -> str:
    """Return an expression for an argument, which needs the names `torch`, `inf` and `nan`."""
    if isinstance(value, torch.Tensor):
        return _tensor_code(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(code, value))}]"
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    return repr(value)


def _tensor_code(tensor: torch.Tensor) -> str:
    shape, dtype = tuple(tensor.shape), tensor.dtype
    first = tensor.flatten()[0].item() if tensor.numel() else 0
    if tensor.numel() == 0 or bool((tensor == first).all()):
        text = f"torch.full({shape}, {first!r}, dtype={dtype})" if first else f"torch.zeros({shape}, dtype={dtype})"
    else:
        text = f"torch.tensor({tensor.tolist()!r}, dtype={dtype})"
    if tensor.is_contiguous():
        return text
    return f"torch.empty_strided({shape}, {tuple(tensor.stride())}, dtype={dtype}).copy_({text})"


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the tensor's strides, or plain ones if elements share memory."""
    needed = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n)
    dense = tensor.numel() <= needed and 0 not in tensor.stride()
    return tuple(tensor.stride()) if dense else torch.empty(tensor.shape, device="meta").stride()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def _mapped(arguments: Mapping[str, Any], function: Any, *parameters: Any) -> Arguments:
    """Return the arguments with a function applied to each tensor and each list of integers."""

    def mapped(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return function(value, *parameters)
        if isinstance(value, list | tuple):
            if function is _resized and all(type(item) is int for item in value):
                return [parameters[1] if item == parameters[0] else item for item in value]
            return [mapped(item) for item in value]
        return value

    return {name: mapped(value) for name, value in arguments.items()}


def _resized(tensor: torch.Tensor, size: int, smaller: int) -> torch.Tensor:
    contiguous = tensor.is_contiguous()
    for dimension in [i for i, n in enumerate(tensor.shape) if n == size]:
        tensor = tensor.narrow(dimension, 0, smaller)
    return tensor.contiguous() if contiguous else plain(tensor)


def _without_first_dimension(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[0].contiguous() if tensor.dim() and tensor.shape[0] else tensor


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous()


def _in_float32(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor)
