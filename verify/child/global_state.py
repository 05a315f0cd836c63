"""State of the process that outlives a call, by which one kernel could touch the next: told and put back.

To look at every function of torch after every call would take a third of a call's time; CPython counts the changes of a
dict, so that only those are looked into that were changed.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import math
import os
import random
import sys
from collections.abc import Callable
from operator import is_
from types import ModuleType
from typing import Any

import numpy as np
import torch

from traces.packaging import qualified

_TINY = 5e-324  # the smallest denormal double


class GlobalState:
    """A snapshot, and what differs from it. To be taken and compared under the same grad mode."""

    def __init__(self) -> None:
        self._flags = {name: (get(), get, put) for name, (get, put) in _flags().items()}
        self._spaces = [_Space(name, space) for name, space in _namespaces().items()]

    def restore(self) -> list[str]:
        """Names of what changed since the snapshot; it is as it was afterwards, where PyTorch lets it be."""
        changed = [name for name, (before, get, _) in self._flags.items() if get() != before]
        for name in changed:
            before, _, put = self._flags[name]
            put(before)
        for space in self._spaces:
            changed += space.restore()
        return changed


def _flags() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """What to read and how to write it, by name."""
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    pairs: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "number of threads": (torch.get_num_threads, torch.set_num_threads),
        "deterministic algorithms": (
            torch.get_deterministic_debug_mode,
            torch.set_deterministic_debug_mode,
        ),
        "float32 matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        "cuda matmul tf32": (torch._C._get_cublas_allow_tf32, torch._C._set_cublas_allow_tf32),
        "cudnn tf32": (torch._C._get_cudnn_allow_tf32, torch._C._set_cudnn_allow_tf32),
        "grad mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
        "default device": (lambda: str(torch.get_default_device()), lambda _: torch.set_default_device(None)),
        "flush denormal": (lambda: _TINY * float(len("x")) == 0, torch.set_flush_denormal),
        "autocast": (lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on)),
        "torch RNG state": (_rng_state, _set_rng_state),
        "random state": (random.getstate, random.setstate),
        "NumPy RNG state": (_numpy_state, _set_numpy_state),
        "environment": (lambda: dict(os.environ), _set_environment),
        "dispatch modes": (torch._C._len_torch_dispatch_stack, _pop_dispatch_modes),
        "function modes": (torch._C._len_torch_function_stack, _pop_function_modes),
        "torch.library registrations": (lambda: (len(torch.library._impls), len(torch.library._defs)), lambda _: None),
        "tracing": (lambda: (sys.gettrace(), sys.getprofile()), _set_tracing),
        "recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    }
    attributes = [
        (torch.utils.deterministic, "fill_uninitialized_memory"),
        (cuda, "allow_fp16_reduced_precision_reduction"),
        (cuda, "allow_bf16_reduced_precision_reduction"),
        (cudnn, "enabled"),
        (cudnn, "benchmark"),
        (cudnn, "deterministic"),
    ]
    return pairs | {f"{_path(owner)}.{name}": _attribute(owner, name) for owner, name in attributes}


def _path(owner: Any) -> str:
    return getattr(owner, "__name__", "torch.backends.cuda.matmul")


def _attribute(owner: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


def _rng_state() -> bytes:
    return torch.default_generator.get_state().numpy().tobytes()


def _set_rng_state(state: bytes) -> None:
    torch.default_generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _numpy_state() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=False)
    return (
        state["bit_generator"],
        state["state"]["key"].tobytes(),
        state["state"]["pos"],
        state["has_gauss"],
        state["gauss"],
    )


def _set_numpy_state(state: tuple[Any, ...]) -> None:
    name, keys, *rest = state
    np.random.set_state((name, np.frombuffer(keys, dtype=np.uint32), *rest))


def _set_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def _pop_dispatch_modes(depth: int) -> None:
    while torch._C._len_torch_dispatch_stack() > depth:
        torch.utils._python_dispatch._pop_mode()


def _pop_function_modes(depth: int) -> None:
    while torch._C._len_torch_function_stack() > depth:
        torch.overrides._pop_mode()  # type: ignore[no-untyped-call]


def _set_tracing(functions: tuple[Any, Any]) -> None:
    sys.settrace(functions[0])
    sys.setprofile(functions[1])


def changes(held: dict[str, Any]) -> ctypes.c_uint64:
    """What CPython counts up with every change of a dict: `ma_version_tag` (PEP 509), behind the head and the size."""
    return ctypes.c_uint64.from_address(id(held) + 3 * tuple.__itemsize__)


def _are_counted() -> bool:
    """Whether this Python counts them; from 3.13 on none does."""
    held: dict[str, Any] = {"name": 1}
    told = [changes(held).value]
    for change in (lambda: None, lambda: held.update(name=2), lambda: held.update(other=2), lambda: held.pop("name")):
        change()
        told.append(changes(held).value)
    return told[0] == told[1] and len({*told}) == len(told) - 1


COUNTED = _are_counted()


class _Space:
    """The functions, classes and modules that a module or class holds."""

    def __init__(self, name: str, space: Any) -> None:
        self._name = name
        self._space = space
        self._is_class = isinstance(space, type)
        held = vars(space)
        self._changes = changes(gc.get_referents(held)[0] if self._is_class else held)  # a class shows a proxy
        self._seen = self._changes.value
        self._keys = [k for k, v in held.items() if self._is_class or callable(v) or isinstance(v, ModuleType)]
        self._values = [held[k] for k in self._keys]

    def restore(self) -> list[str]:
        if COUNTED and self._changes.value == self._seen:
            return []
        found = self._restored()
        self._seen = self._changes.value
        return found

    def _restored(self) -> list[str]:
        held = vars(self._space)
        same = all(map(is_, map(held.get, self._keys), self._values))
        if same and not (self._is_class and len(held) != len(self._keys)):
            return []
        before = dict(zip(self._keys, self._values, strict=True))
        replaced = [k for k, v in before.items() if held.get(k) is not v]
        added = [k for k in held if k not in before] if self._is_class else []
        for key in replaced:
            setattr(self._space, key, before[key])
        for key in added:
            delattr(self._space, key)
        return [f"{self._name}.{key}" for key in replaced + added]


def _namespaces() -> dict[str, Any]:
    import triton
    from triton.runtime import autotuner, interpreter, jit

    modules: list[ModuleType] = [builtins, math, torch, torch.nn.functional, torch.testing, torch.overrides]
    modules += [np, triton, triton.language, triton.language.math, interpreter, jit, autotuner]
    ours = [m for name, m in sys.modules.items() if name.startswith((qualified("verify."), qualified("traces.")))]
    classes = [torch.Tensor, jit.JITFunction, jit.KernelInterface, autotuner.Autotuner]
    classes += [interpreter.InterpretedFunction, interpreter.GridExecutor, interpreter.InterpreterBuilder]
    named = {m.__name__: m for m in modules + ours}
    return named | {f"{c.__module__}.{c.__qualname__}": c for c in classes}
