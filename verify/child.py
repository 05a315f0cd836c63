"""What runs in a child: load a kernel file, rebuild a case's arguments, run the wrapper, send raw bytes back.

Two modes. `execute` runs launches in Triton's interpreter. `compile` compiles each launch for the platform's targets
and does not run it, so what it returns is what the wrapper would return if its kernels did nothing. The child holds no
reference, no tolerance and no verdict.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from traces.overloads import kind, name_of
from traces.values import Rebuilt, pack, unpack
from verify import wire
from verify.derive import Plan, call
from verify.sandbox import COMPILE, EXECUTE

MAX_LOG = 20_000  # characters of compiler output or traceback that are sent back


class OutOfSharedMemory(Exception):
    """A kernel compiles, but no program instance of it fits on the target."""


class Guard(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Notes every ATen call that is neither the platform's allocation nor a view, while no launch runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.muted = False
        self.clear()

    def clear(self) -> None:
        """Forget what was noted, before the next case."""
        self.operators: list[str] = []
        self.kernels: list[str] = []  # names, one a launch
        self.refused = ""  # the compiler's log of the first launch that it refused, whatever the wrapper made of that

    def notes(self) -> dict[str, Any]:
        """What every reply carries."""
        return {"operators": self.operators[:20], "kernels": sorted(set(self.kernels)), "refused": self.refused}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not self.muted:
            name = name_of(func)
            if kind(name, {}) not in ("view", "memory"):
                self.operators.append(name)
        return func(*args, **(kwargs or {}))

    @contextmanager
    def launch(self, kernel: str) -> Iterator[None]:
        """While a launch runs the interpreter moves tensors about; those calls are not the wrapper's."""
        self.kernels.append(kernel)
        self.muted = True
        try:
            yield
        finally:
            self.muted = False


_guard = Guard()


def prepare(mode: str) -> None:
    """Import and patch what every job needs, once, before the first fork."""
    torch.set_num_threads(1)
    # torch.empty is filled with NaN (or the largest integer), so that a result never written is never right by luck.
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
    if mode == EXECUTE:
        _patch_interpreter()


def _patch_interpreter() -> None:
    from triton.runtime import interpreter
    from triton.runtime.interpreter import GridExecutor

    original, patch_tensor = GridExecutor.__call__, interpreter._patch_lang_tensor

    def patch(tensor: Any, *rest: Any) -> None:
        """Triton 3.6 takes `int()` of an array of one element for a loop's bound; NumPy 2.5 refuses that."""
        patch_tensor(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _guard.launch(self.fn.__name__):
            return original(self, *args, **kwargs)

    GridExecutor.__call__ = launch
    interpreter._patch_lang_tensor = patch


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


def _patch_compiler(targets: list[dict[str, Any]]) -> None:
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        with _guard.launch(self.__name__):
            for target in targets:
                driver.set_active(_CompileOnlyDriver(target))
                self.device_caches.pop(0, None) if len(targets) > 1 else None
                try:
                    compiled = original(self, *args, grid=grid, warmup=True, **kwargs)
                    _check_shared_memory(self.__name__, compiled, target)
                except Exception as error:  # noqa: BLE001 - whatever the compiler raises is its log
                    _guard.refused = _guard.refused or f"{type(error).__name__}: {error}"
                    raise

    JITFunction.run = launch


def _check_shared_memory(kernel: str, compiled: Any, target: dict[str, Any]) -> None:
    needed = compiled.metadata.shared
    if needed > target["shared_bytes"]:
        limit = f"{target['backend']}:{target['arch']} has {target['shared_bytes']}"
        raise OutOfSharedMemory(f"{kernel} needs {needed} bytes of shared memory; {limit}")


def serve(mode: str, sock: socket.socket) -> None:
    """Answer one job's frames until the parent closes the socket."""
    job, _ = wire.receive(sock)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + job["memory_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if mode == COMPILE:
        _patch_compiler(job["targets"])
    with tempfile.TemporaryDirectory() as directory, _stderr_to_file(Path(directory)) as log:
        job["directory"] = directory
        loaded: dict[str, Any] | None = None
        while True:
            try:
                header, buffers = wire.receive(sock)
            except wire.WireError:
                return
            try:
                loaded = loaded or _load(job)
                reply, packed = _run(header, buffers, job, loaded)
            except Exception as error:  # noqa: BLE001 - one case: the candidate's error is the case's outcome
                wire.send(sock, _failure(error, directory, log))
                continue
            wire.send_packed(sock, reply, packed)


def _address_space() -> int:
    """Bytes of address space that this process has mapped: 1 GiB with torch for the CPU, many with one for CUDA."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _load(job: dict[str, Any]) -> dict[str, Any]:
    """The wrappers of the job's kernel files by role (`kernel`, `copy`)."""
    wrappers: dict[str, Any] = {"copy": None}
    for role, source in job["sources"].items():
        path = Path(job["directory"]) / f"{role}.py"
        path.write_text(source, encoding="utf-8")
        name = f"enable_kernel_{role}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # Triton looks a kernel's module up by name
        spec.loader.exec_module(module)
        wrappers[role] = module.wrapper
    return wrappers


def _run(header: dict[str, Any], buffers: list[Any], job: dict[str, Any], wrappers: dict[str, Any]) -> tuple[Any, Any]:
    memory: list[Rebuilt] = []
    arguments = unpack(wire.packed_of(header, buffers, "case"), memory=memory)
    _guard.clear()
    with _guard, torch.no_grad():
        result = call(Plan(**job["plan"]), arguments, wrappers["kernel"], job["takes_out"], wrappers["copy"])
    reply = {"status": "ok", "outside": not all(m.guards_intact() for m in memory), **_guard.notes()}
    return reply, pack({**arguments, "return": result})


def _failure(error: BaseException, directory: str, log: Path) -> dict[str, Any]:
    notes = _guard.notes()
    if notes["refused"]:
        notes["refused"] = _clean(f"{notes['refused']}\n{log.read_text(errors='replace')}", directory)
    return {"status": "error", "text": _clean(_describe(error, directory), directory), **notes}


def _clean(text: str, directory: str) -> str:
    return text.replace(directory, ".")[-MAX_LOG:].strip()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _describe(error: BaseException, directory: str) -> str:
    """The innermost error, its cause chain flattened, and the lines of the kernel file that led to it."""
    innermost = list(_chain(error))[-1]
    lines = _frames(error.__traceback__, directory) + _frames(innermost.__traceback__, directory)
    shown = list(dict.fromkeys(lines))
    return "\n".join([f"{type(innermost).__name__}: {innermost}", *shown])


def _frames(tb: TracebackType | None, directory: str) -> list[str]:
    frames = [f for f in traceback.extract_tb(tb) if f.filename.startswith(directory)]
    return [f"  line {f.lineno}, in {f.name}: {(f.line or '').strip()}" for f in frames]


@contextmanager
def _stderr_to_file(directory: Path) -> Iterator[Path]:
    """MLIR and ptxas write their diagnostics to file descriptor 2."""
    path = directory / "stderr.txt"
    saved = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield path
    finally:
        os.dup2(saved, 2)
        os.close(saved)
