"""Launches that compile for every target and do not run."""

from __future__ import annotations

import linecache
from typing import Any

import torch

from verify.compiler_log import compiler_log
from verify.guards import check_arguments, launching, notes
from verify.witness import witness


class OutOfSharedMemory(Exception):
    """A kernel compiles, but no program instance of it fits on the target."""


class _CompileOnlyDriver:
    """The little of a Triton driver that choosing a target and specialising arguments asks for."""

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


def patch_compiler(targets: list[dict[str, Any]]) -> None:
    """Have every launch compile for every target, and do no more."""
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        notes.kernels.append(self.__name__)
        witness.launch(self.__name__)
        constexprs = {p.name for p in self.params if p.is_constexpr}
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        check_arguments(self.__name__, {n: v for n, v in named.items() if n in self.arg_names}, constexprs)
        with launching():
            for target in targets:
                driver.set_active(_CompileOnlyDriver(target))
                self.device_caches.pop(0, None) if len(targets) > 1 else None
                try:
                    compiled = original(self, *args, grid=grid, warmup=True, **kwargs)
                    _check_shared_memory(self.__name__, compiled, target)
                except Exception as error:  # noqa: BLE001 - whatever the compiler raises is its log
                    file = "".join(linecache.getlines(self.fn.__code__.co_filename))
                    notes.refused = notes.refused or compiler_log(error, file)
                    raise

    def compile_config(kernel_call: Any, quantiles: Any) -> list[float]:
        """An autotuner's timing: every configuration compiles, none is faster than another."""
        kernel_call()
        return [0.0 for _ in quantiles]

    JITFunction.run = launch
    Autotuner.do_bench = property(lambda self: compile_config)


def _check_shared_memory(kernel: str, compiled: Any, target: dict[str, Any]) -> None:
    needed = compiled.metadata.shared
    if needed > target["shared_bytes"]:
        limit = f"{target['backend']}:{target['arch']} has {target['shared_bytes']}"
        raise OutOfSharedMemory(f"{kernel} needs {needed} bytes of shared memory; {limit}")
