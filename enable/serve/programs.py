"""Convert shortcuts to programs, the form that the native module (enable/serve/cpp) executes without Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from types import ModuleType
from typing import Any, TypeAlias

import torch

from enable.serve.floats import General
from enable.serve.modules import triton_is
from enable.serve.shortcuts import ARGUMENTS, FUNCTION, KernelLaunch, Numbered, Shortcut, SparseParts, View

WARP = 32  # lanes per warp on CUDA
_OWN = "enable_kernel_"  # module name prefix of kernel files (enable/serve/modules.py)

Parameter: TypeAlias = tuple[str, Any, tuple[int, int] | None]  # type, value, place (enable/serve/shortcuts.py)
Part: TypeAlias = tuple[Any, ...]  # a part of the result, as module.cpp reads it


class Foreign(Exception):
    """Raised if the native module has no form for a launch or result."""


def program(module: ModuleType, shortcut: Shortcut, returns: Sequence[str], of_all: General | None = None) -> Any:
    """Return the native program for a shortcut.

    Args:
        module: The native module.
        shortcut: The launches.
        returns: The schema's return types.
        of_all: Conditions on the floats if the program also serves calls with other floats.

    Raises:
        Foreign: The native module cannot run this shortcut.
    """
    launches = [launch for launch in shortcut.launches if all(launch.arguments[:3])]  # skip launches with an empty grid
    results = [shortcut.result] if len(returns) == 1 else list(shortcut.result or ())
    if len(results) != len(returns):
        raise Foreign
    answer = [_part(value, kind) for value, kind in zip(results, returns, strict=True)]
    parameters = [list(_parameters(launch)) for launch in launches]
    used_tensors = [{position[0] for _, _, position in one if position and position[0] >= 0} for one in parameters]
    returned = {number for part in answer for number in _numbers(part)}
    first = len(shortcut.aligned)
    allocations = [
        (*m, *_lifetime(first + i, used_tensors, first + i in returned)) for i, m in enumerate(shortcut.made)
    ]
    compiled = [
        _launch(module, launch, launch_parameters)
        for launch, launch_parameters in zip(launches, parameters, strict=True)
    ]
    fits = (of_all.equal_groups, of_all.fixed, list(map(tuple, of_all.asked)), of_all.seed) if of_all else None
    hooks = [hook.calls for hook in shortcut.hooks]
    footprint = astuple(shortcut.footprint) if shortcut.footprint else None
    return module.Program(shortcut.aligned, allocations, compiled, answer, hooks, fits, shortcut.apart, footprint)


def _part(value: Any, kind: str) -> Part:
    """Return a part of the result in the form that module.cpp reads."""
    if type(value) is Numbered:
        return "tensor", int(value)
    if type(value) is View:
        return "view", value.number, value.size, value.stride, value.offset
    if type(value) is SparseParts:
        inner = _part(value.indices, kind), _part(value.values, kind)
        return "sparse", *inner, value.size, value.coalesced
    if type(value) in (tuple, list) and all(type(item) is Numbered for item in value):
        return "tensors", [int(item) for item in value]
    if value is None:
        return "undefined" if kind == "Tensor" else "value", None
    if type(value) in (bool, int, float):
        return "value", value
    raise Foreign


def _numbers(part: Part) -> list[int]:
    """Return the numbers of the tensors in a part."""
    kind, value = part[:2]
    if kind == "sparse":
        return [number for inner in part[1:3] for number in _numbers(inner)]
    return [] if kind in ("value", "undefined") else value if kind == "tensors" else [value]


def _lifetime(number: int, used: list[set[int]], kept: bool) -> tuple[int, int]:
    """Return the launch before which a tensor is allocated and the launch after which it is freed.

    A returned or unused tensor gets len(used), which is no launch's number, so it lives until the end of the program.
    """
    uses = [at for at, numbers in enumerate(used) if number in numbers]
    return uses[0] if uses else 0, len(used) if kept or not uses else uses[-1]


def _parameters(launch: KernelLaunch) -> Iterator[Parameter]:
    """Yield the compiled kernel's parameters, without those that are compile-time constants."""
    places: dict[int, Any] = {i - ARGUMENTS: (source, offset) for i, source, offset in launch.places}
    places |= {i - ARGUMENTS: of for i, of in launch.tuples}
    return _flat(_types(launch.kernel.src), launch.arguments[ARGUMENTS:], places)


def _types(source: Any) -> tuple[Any, ...]:
    """Return the types in the kernel's signature."""
    return tuple(source.signature.values())


def _flat(types: Sequence[Any], values: Sequence[Any], places: Mapping[int, Any]) -> Iterator[Parameter]:
    """Yield the parameters with tuples flattened; raise Foreign for tensor descriptors."""
    if len(types) != len(values):
        raise Foreign
    for i, (kind, value) in enumerate(zip(types, values, strict=True)):
        if isinstance(kind, tuple):
            yield from _flat(kind, value, dict(places.get(i) or ()))
        elif kind != "constexpr":
            if kind.startswith(("tensordesc", "nvTma")):
                raise Foreign
            yield kind, value, places.get(i)


def _launch(module: ModuleType, launch: KernelLaunch, parameters: list[Parameter]) -> Any:
    """Return the native form of one launch, with patches for its pointers and floats."""
    patches = [(i, *position) for i, (_, _, position) in enumerate(parameters) if position]
    return _compiled(module, launch.kernel.metadata, launch.arguments, parameters, patches)


def _compiled(
    module: ModuleType,
    metadata: Any,
    arguments: Sequence[Any],
    parameters: list[Parameter],
    patches: list[tuple[int, int, int]],
) -> Any:
    """Return a native launch of a compiled kernel."""
    _check(metadata)
    types, values = [kind for kind, *_ in parameters], [value for _, value, _ in parameters]
    try:
        return module.Launch(
            arguments[FUNCTION],
            arguments[:3],
            WARP * metadata.num_warps,
            metadata.shared,
            getattr(metadata, "global_scratch_size", 0),
            types,
            values,
            patches,
        )
    except (RuntimeError, TypeError) as error:  # the module does not know a parameter's type
        raise Foreign from error


def _check(metadata: Any) -> None:
    """Raise Foreign for a kernel that needs more than a plain launch."""
    more = ("launch_cooperative_grid", "launch_pdl", "profile_scratch_size")
    if metadata.target.backend != "cuda" or metadata.num_ctas != 1 or any(getattr(metadata, m, 0) for m in more):
        raise Foreign


class _Launcher:
    """Replaces Triton's launcher; it needs no C compilation for each signature."""

    def __init__(self, module: ModuleType, source: Any, metadata: Any) -> None:
        _check(metadata)
        self._module, self._metadata, self._types = module, metadata, _types(source)

    def __call__(self, *arguments: Any) -> None:
        launched, enter, leave = arguments[6:ARGUMENTS]
        parameters: list[Parameter] = [
            (kind, _address(kind, value), None) for kind, value, _ in _flat(self._types, arguments[ARGUMENTS:], {})
        ]
        compiled = _compiled(self._module, self._metadata, arguments, parameters, [])
        if enter is not None:
            enter(launched)
        if all(arguments[:3]):
            compiled.run(arguments[3], torch.cuda.current_device())
        if leave is not None:
            leave(launched)


def _address(kind: str, value: Any) -> Any:
    """Return a pointer as an integer.

    Raises:
        ValueError: The GPU cannot reach the memory; Triton's launcher raises the same.
    """
    if kind[0] != "*" or value is None or isinstance(value, int):
        return value
    if isinstance(value, torch.Tensor) and not (value.is_cuda or value.is_pinned()):
        raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
    return value.data_ptr()


@contextmanager
def launchers(module: ModuleType) -> Iterator[None]:
    """Give kernels of kernel files our launcher inside the block; Triton would compile one per signature."""
    from triton.runtime import driver

    if not triton_is(("3.6",)):
        yield
        return
    active = driver.active
    triton_launcher: Callable[[Any, Any], Any] = active.launcher_cls

    def made(source: Any, metadata: Any) -> Any:
        ours = str(getattr(source.fn, "__module__", "")).startswith(_OWN)
        try:
            return _Launcher(module, source, metadata) if ours else triton_launcher(source, metadata)
        except Foreign:
            return triton_launcher(source, metadata)

    active.launcher_cls = made
    try:
        yield
    finally:
        active.launcher_cls = triton_launcher
