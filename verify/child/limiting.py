"""Refuse launches and programs that are beyond a chip's limits (verify/limits.py), in the child that compiles.

Launches are checked before they compile. Blocks and calls of the language's functions are checked while the compiler
translates a kernel, because only then their types and shapes are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verify.limits import ELEMENTS, ChipLimits

_DTYPES = {element: dtype for dtype, element in ELEMENTS.items()}
_METHODS = {"cast": ("cast", "to")}  # tensor methods that are not named like their function


class BeyondLimit(Exception):
    """Error raised if a launch or a program is beyond a limit of the chip."""

    def __init__(self, limit: str, value: str, choices: str) -> None:
        super().__init__(f"beyond the chip's limit {limit}: {value}; {choices}")


def check_launch(limits: ChipLimits, kernel: str, sizes: Sequence[Any], stated: Mapping[str, Any]) -> None:
    """Raise BeyondLimit if a launch has a larger grid than the chip, or states a number that it does not allow.

    Args:
        limits: Limits of the chip.
        kernel: Name of the kernel.
        sizes: Grid of the launch.
        stated: Arguments and options of the launch. A number that is not stated is the choice of the chip's backend.
    """
    grid = [int(size) for size in sizes]
    most = [*limits.grid, 1, 1, 1]
    if limits.grid and any(size > limit for size, limit in zip(grid, most, strict=False)):
        value = f"{kernel} is launched with {_product(grid)} programs"
        raise BeyondLimit("grid", value, f"at most {_product(limits.grid)}")
    for name in ("num_warps", "num_stages"):
        allowed = getattr(limits, name)
        if allowed and stated.get(name) not in (None, *allowed):
            raise BeyondLimit(name, f"{kernel} is launched with {stated[name]}", _choices(allowed))


def patch_code_generation(limits: ChipLimits) -> None:
    """Make the compiler raise an error at the kernel's line for a block or a call that is beyond a limit."""
    from triton import language as tl
    from triton.compiler.code_generator import CodeGenerator
    from triton.compiler.errors import CompilationError

    visit, call = CodeGenerator.visit, CodeGenerator.call_Function
    names = _functions(limits)

    def visit_and_check(self: Any, node: Any) -> Any:
        result = visit(self, node)
        if isinstance(result, tl.tensor) and result.type.is_block():
            elements = math.prod(result.type.shape)
            if elements > limits.block_elements:
                error = BeyondLimit("block_elements", f"a block of {elements}", f"at most {limits.block_elements}")
                raise CompilationError(self.jit_fn.src, node, str(error))
        return result

    def call_and_check(self: Any, node: Any, fn: Any, args: list[Any], kws: dict[str, Any]) -> Any:
        owner = getattr(fn, "__self__", None)
        arguments = [*([owner] if isinstance(owner, tl.tensor) else []), *args, *kws.values()]
        result = call(self, node, fn, args, kws)
        name = names.get(id(getattr(fn, "__func__", fn)))
        for error in _problems(limits, name, arguments, result) if name else ():
            raise CompilationError(self.jit_fn.src, node, str(error))
        return result

    if limits.block_elements:
        CodeGenerator.visit = visit_and_check
    if names:
        CodeGenerator.call_Function = call_and_check


def _functions(limits: ChipLimits) -> dict[int, str]:
    """Return the names of the functions that have a limit, by the identities of functions and methods."""
    from triton import language as tl

    dot = ["tl.dot"] if limits.dot_dtypes or limits.dot_smallest or limits.dot_largest else []
    names = {}
    for name in (*limits.functions, *dot):
        function: Any = tl
        for part in name.split(".")[1:]:
            function = getattr(function, part, None)  # a function may be absent in an older Triton
        last = name.rpartition(".")[2]
        methods = [vars(tl.tensor).get(method) for method in _METHODS.get(last, (last,))]
        names.update({id(callee): name for callee in (function, *methods) if callee is not None})
    return names


def _problems(limits: ChipLimits, name: str, arguments: list[Any], result: Any) -> Iterator[BeyondLimit]:
    """Yield the limits that a call of a function is beyond."""
    from triton import language as tl

    # tl.where computes with its second argument; the dtype of a function without a tensor is that of its result
    values = [*(arguments[1:] if name == "tl.where" else arguments), result]
    tensors = [value for value in values if isinstance(value, tl.tensor)]
    if not tensors:
        return
    kind = tensors[0].type.scalar
    element = str((kind.element_ty if kind.is_ptr() else kind).name)
    dtype = _DTYPES.get(element, element)
    allowed = limits.functions.get(name)
    if allowed and dtype not in allowed:
        yield BeyondLimit("functions", f"{name} of {dtype}", _choices(allowed))
    if name == "tl.dot":
        left, right = (tensor.type.shape for tensor in tensors[:2])  # [..., M, K] and [..., K, N]
        yield from _problems_of_dot(limits, dtype, (left[-2], right[-1], left[-1]))


def _problems_of_dot(limits: ChipLimits, dtype: str, sizes: tuple[int, int, int]) -> Iterator[BeyondLimit]:
    """Yield the limits that a product with these M, N and K is beyond."""
    if limits.dot_dtypes and dtype not in limits.dot_dtypes:
        yield BeyondLimit("dot_dtypes", f"tl.dot of {dtype}", _choices(limits.dot_dtypes))
    if any(size < low for size, low in zip(sizes, limits.dot_smallest, strict=False)):
        yield BeyondLimit("dot_smallest", f"tl.dot with {_dot(*sizes)}", f"at least {_dot(*limits.dot_smallest)}")
    if any(size > high for size, high in zip(sizes, limits.dot_largest, strict=False)):
        yield BeyondLimit("dot_largest", f"tl.dot with {_dot(*sizes)}", f"at most {_dot(*limits.dot_largest)}")


def _dot(m: int, n: int, k: int) -> str:
    return f"M={m}, N={n}, K={k}"


def _product(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _choices(allowed: Sequence[Any]) -> str:
    return f"choose from {', '.join(map(str, allowed))}"
