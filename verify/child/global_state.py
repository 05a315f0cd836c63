"""Detect and undo changes to process state, through which one kernel could affect the next.

It would take one third of a call's time to compare every function of torch after every call. CPython counts the
changes to a dict, so only changed dicts are compared.
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

_TINY = 5e-324  # smallest denormal double


class GlobalState:
    """Snapshot of the process state; it must be taken and compared under the same grad mode."""

    def __init__(self) -> None:
        self._flags = {name: (get(), get, put) for name, (get, put) in _flags().items()}
        self._spaces = [_Space(name, space) for name, space in _namespaces().items()]

    def restore(self) -> list[str]:
        """Return the changed state by name, and restore the snapshot as far as PyTorch allows."""
        changed = [name for name, (before, get, _) in self._flags.items() if get() != before]
        for name in changed:
            before, _, put = self._flags[name]
            put(before)
        for space in self._spaces:
            changed += space.restore()
        return changed


def _flags() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return getter and setter pairs, by name."""
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


def changes(namespace: dict[str, Any]) -> ctypes.c_uint64:
    """Return CPython's counter of changes to a dict, `ma_version_tag` (PEP 509).

    It lies after the object header and the size.
    """
    return ctypes.c_uint64.from_address(id(namespace) + 3 * tuple.__itemsize__)


def _are_counted() -> bool:
    """Return True if this Python counts changes to dicts; versions from 3.13 on do not."""
    sample: dict[str, Any] = {"name": 1}
    counts = [changes(sample).value]
    for change in (
        lambda: None,
        lambda: sample.update(name=2),
        lambda: sample.update(other=2),
        lambda: sample.pop("name"),
    ):
        change()
        counts.append(changes(sample).value)
    return counts[0] == counts[1] and len({*counts}) == len(counts) - 1


COUNTED = _are_counted()


class _Space:
    """Functions, classes and modules that a module or class contains."""

    def __init__(self, name: str, space: Any) -> None:
        self._name = name
        self._space = space
        self._is_class = isinstance(space, type)
        members = vars(space)
        # vars() of a class is a proxy for its dict
        self._changes = changes(gc.get_referents(members)[0] if self._is_class else members)
        self._seen = self._changes.value
        self._keys = [k for k, v in members.items() if self._is_class or callable(v) or isinstance(v, ModuleType)]
        self._values = [members[k] for k in self._keys]

    def restore(self) -> list[str]:
        if COUNTED and self._changes.value == self._seen:
            return []
        changed = self._restored()
        self._seen = self._changes.value
        return changed

    def _restored(self) -> list[str]:
        members = vars(self._space)
        same = all(map(is_, map(members.get, self._keys), self._values))
        if same and not (self._is_class and len(members) != len(self._keys)):
            return []
        before = dict(zip(self._keys, self._values, strict=True))
        replaced = [k for k, v in before.items() if members.get(k) is not v]
        added = [k for k in members if k not in before] if self._is_class else []
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
