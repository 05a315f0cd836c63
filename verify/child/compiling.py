"""Compile launches for every target without running them."""

from __future__ import annotations

import hashlib
import linecache
from typing import Any

import torch

from verify.child.compiler_log import compiler_log
from verify.child.guards import check_arguments, launching, notes
from verify.child.launch_log import launch_log
from verify.child.launches import grid_of, note, passed
from verify.child.limiting import check_launch, patch_code_generation
from verify.child.translated import translated
from verify.child.tuning import patch_autotuners
from verify.child.witness import witness
from verify.limits import ChipLimits

# for one program instance: CUDA C programming guide, table of compute capabilities; HIP has the same limit
MAX_THREADS = 1024


class TooManyThreads(Exception):
    """Error raised if a kernel compiles, but with more warps than a program instance can have."""


class OutOfSharedMemory(Exception):
    """Error raised if a kernel compiles, but a program instance needs more shared memory than the target has."""


class CompileOnlyDriver:
    """Minimal Triton driver, sufficient to choose a target and to specialise arguments."""

    def __init__(self, target: dict[str, Any]) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(target["backend"], target["arch"], target["warp_size"])

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


class Targets:
    """Targets of the platform, and the targets that launches compile for at present; all by default."""

    def __init__(self) -> None:
        self.every = self.now = list[dict[str, Any]]()


targets = Targets()


def patch_compiler(every: list[dict[str, Any]], limits: ChipLimits) -> None:
    """Replace Triton's launch by compilation for all targets, within the limits of the chip."""
    targets.every = targets.now = every
    from triton import knobs
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    original = JITFunction.run
    knobs.compilation.store_binary_only = True  # intermediate representations are not read, so they are not stored

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        notes.kernels.append(self.__name__)
        witness.launch(self.__name__)
        constexprs = {p.name for p in self.params if p.is_constexpr}
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        check_arguments(self.__name__, {n: v for n, v in named.items() if n in self.arg_names}, constexprs)
        runtime = frozenset(self.arg_names) - constexprs
        arguments = passed(self.params, named)
        sizes = grid_of(grid, arguments)
        note(self.__name__, sizes, arguments)
        if launch_log.on and not notes.tunes:
            launch_log.launch(self, sizes, arguments)
        variant = _variant(self, named, constexprs)
        notes.variants[variant] = None
        usual = {n: _usual(v) if n in runtime else v for n, v in named.items()}

        def compile_for(target: dict[str, Any], launch_arguments: dict[str, Any]) -> Any:
            driver.set_active(CompileOnlyDriver(target))
            # Triton caches compiled kernels by device index, which is 0 for every target.
            self.device_caches.pop(0, None) if len(targets.every) > 1 else None
            compiled = original(self, grid=grid, warmup=True, **{**dict(target["options"]), **launch_arguments})
            _check_threads(self.__name__, compiled, target)
            _check_shared_memory(self.__name__, compiled, target)
            return compiled

        compiled = None
        file = self.fn.__code__.co_filename
        with launching(), translated.recording(f"{file}:{variant}") as anew:
            if translated.on:
                knobs.compilation.always_compile = anew
            if anew:
                self.device_caches.pop(0, None)
            try:
                check_launch(limits, self.__name__, sizes, named)
                for target in targets.now:
                    try:
                        compiled = compile_for(target, usual)
                    except Exception:  # noqa: BLE001 - the usual integers failed; retry with the actual ones
                        compiled = compile_for(target, named)
            except Exception as error:  # noqa: BLE001 - any exception of the compiler is its log
                notes.refused = notes.refused or compiler_log(error, "".join(linecache.getlines(file)))
                raise
        return compiled

    JITFunction.run = launch
    patch_autotuners()
    patch_code_generation(limits)


def _usual(value: Any) -> Any:
    """Return the multiple of 16 that represents an integer argument of the same width; 1 is unchanged.

    Triton compiles separately for an integer that is 1, which it folds, and for a multiple of 16. The latter is
    an alignment hint: aligned data can be copied in pipelines, which needs the most shared memory. A kernel that
    compiles with the hint therefore compiles without it, so it is not compiled for each tuple of sizes.
    """
    if isinstance(value, tuple):
        items = tuple(map(_usual, value))
        return type(value)(*items) if hasattr(value, "_fields") else items
    if type(value) is not int or value == 1:
        return value
    if -(2**31) <= value < 2**31:
        return 16
    return 2**32 if value < 2**63 else 2**63


def _variant(kernel: Any, named: dict[str, Any], constexprs: set[str]) -> str:
    """Name the specialisation that Triton compiles for a launch; launches with the same name share it on one target."""
    plain = {p.name for p in kernel.params if p.do_not_specialize}
    properties = {
        n: str(v) if n in constexprs or n not in kernel.arg_names else _known(v, n in plain) for n, v in named.items()
    }
    return f"{kernel.__name__}:{hashlib.sha256(repr(sorted(properties.items())).encode()).hexdigest()[:16]}"


def _known(value: Any, plain: bool = False) -> Any:
    """Return the properties of an argument that the compiler specialises on.

    For an integer, these are its width and, unless `plain`, a mark if it is 1 or a multiple of 16. For a tensor,
    these are its dtype, and True if its address is a multiple of 16.
    """
    if isinstance(value, tuple):
        return tuple(map(_known, value))
    if isinstance(value, torch.Tensor):
        return str(value.dtype), plain or value.data_ptr() % 16 == 0
    if type(value) is int:
        width = 32 if -(2**31) <= value < 2**31 else 64 if value < 2**63 else -64
        return width, not plain and (1 if value == 1 else 16 if value % 16 == 0 else 0)
    return type(value).__name__


def _check_threads(kernel: str, compiled: Any, target: dict[str, Any]) -> None:
    warps, threads = compiled.metadata.num_warps, target["warp_size"]
    if warps * threads > MAX_THREADS:
        raise TooManyThreads(f"{kernel} has {warps} warps of {threads} threads; a program has at most {MAX_THREADS}")


def _check_shared_memory(kernel: str, compiled: Any, target: dict[str, Any]) -> None:
    needed = compiled.metadata.shared
    if needed > target["shared_bytes"]:
        limit = f"{target['backend']}:{target['arch']} has {target['shared_bytes']}"
        raise OutOfSharedMemory(f"{kernel} needs {needed} bytes of shared memory; {limit}")
