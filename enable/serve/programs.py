"""Programs: shortcuts in a form that the native module (enable/serve/cpp) carries out without Python."""

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

WARP = 32  # lanes
_OWN = "enable_kernel_"  # how the modules of kernel files are called (enable/serve/modules.py)

Parameter: TypeAlias = tuple[str, Any, tuple[int, int] | None]  # type, value, place (enable/serve/shortcuts.py)
Part: TypeAlias = tuple[Any, ...]  # of an answer, as module.cpp reads it


class Foreign(Exception):
    """The native module has no form for this."""


def program(module: ModuleType, shortcut: Shortcut, returns: Sequence[str], of_all: General | None = None) -> Any:
    """The program of a shortcut. returns: the types of what its calls return, as the schema writes them. of_all: where
    it is for calls with other floats, too.

    Raises Foreign if it has none.
    """
    launches = [launch for launch in shortcut.launches if all(launch.arguments[:3])]  # of at least one program each
    results = [shortcut.result] if len(returns) == 1 else list(shortcut.result or ())
    if len(results) != len(returns):
        raise Foreign
    answer = [_part(value, kind) for value, kind in zip(results, returns, strict=True)]
    parameters = [list(_parameters(launch)) for launch in launches]
    used = [{place[0] for _, _, place in one if place and place[0] >= 0} for one in parameters]
    kept = {number for part in answer for number in _numbers(part)}
    first = len(shortcut.aligned)
    made = [(*m, *_lifetime(first + i, used, first + i in kept)) for i, m in enumerate(shortcut.made)]
    compiled = [_launch(module, launch, own) for launch, own in zip(launches, parameters, strict=True)]
    fits = (of_all.alike, of_all.fixed, list(map(tuple, of_all.asked)), of_all.seed) if of_all else None
    hooks = [hook.calls for hook in shortcut.hooks]
    footprint = astuple(shortcut.footprint) if shortcut.footprint else None
    return module.Program(shortcut.aligned, made, compiled, answer, hooks, fits, shortcut.apart, footprint)


def _part(value: Any, kind: str) -> Part:
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
    kind, what = part[:2]
    if kind == "sparse":
        return [number for inner in part[1:3] for number in _numbers(inner)]
    return [] if kind in ("value", "undefined") else what if kind == "tensors" else [what]


def _lifetime(number: int, used: list[set[int]], kept: bool) -> tuple[int, int]:
    """Before which launch a tensor is allocated, and after which it is let go; no launch has the number of all."""
    uses = [at for at, numbers in enumerate(used) if number in numbers]
    return uses[0] if uses else 0, len(used) if kept or not uses else uses[-1]


def _parameters(launch: KernelLaunch) -> Iterator[Parameter]:
    """Of the kernel as it was compiled, without what is constant in it."""
    places: dict[int, Any] = {i - ARGUMENTS: (source, offset) for i, source, offset in launch.places}
    places |= {i - ARGUMENTS: of for i, of in launch.tuples}
    return _flat(_types(launch.kernel.src), launch.arguments[ARGUMENTS:], places)


def _types(source: Any) -> tuple[Any, ...]:
    return tuple(source.signature.values())


def _flat(types: Sequence[Any], values: Sequence[Any], places: Mapping[int, Any]) -> Iterator[Parameter]:
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
    patches = [(i, *place) for i, (_, _, place) in enumerate(parameters) if place]
    return _compiled(module, launch.kernel.metadata, launch.arguments, parameters, patches)


def _compiled(
    module: ModuleType,
    metadata: Any,
    arguments: Sequence[Any],
    parameters: list[Parameter],
    patches: list[tuple[int, int, int]],
) -> Any:
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
    except (RuntimeError, TypeError) as error:  # a parameter of a type that it does not know
        raise Foreign from error


def _check(metadata: Any) -> None:
    """Raises Foreign for kernels that take more than a plain launch."""
    more = ("launch_cooperative_grid", "launch_pdl", "profile_scratch_size")
    if metadata.target.backend != "cuda" or metadata.num_ctas != 1 or any(getattr(metadata, m, 0) for m in more):
        raise Foreign


class _Launcher:
    """In the place of Triton's: one that need not be compiled in C for each signature."""

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
    """A pointer's number. Raises ValueError for memory that the GPU does not reach, as Triton's launcher does."""
    if kind[0] != "*" or value is None or isinstance(value, int):
        return value
    if isinstance(value, torch.Tensor) and not (value.is_cuda or value.is_pinned()):
        raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
    return value.data_ptr()


@contextmanager
def launchers(module: ModuleType) -> Iterator[None]:
    """Inside the block kernels of kernel files get our launcher where Triton would compile one for each signature."""
    from triton.runtime import driver

    if not triton_is(("3.6",)):
        yield
        return
    active = driver.active
    own: Callable[[Any, Any], Any] = active.launcher_cls

    def made(source: Any, metadata: Any) -> Any:
        ours = str(getattr(source.fn, "__module__", "")).startswith(_OWN)
        try:
            return _Launcher(module, source, metadata) if ours else own(source, metadata)
        except Foreign:
            return own(source, metadata)

    active.launcher_cls = made
    try:
        yield
    finally:
        active.launcher_cls = own
