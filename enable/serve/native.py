"""The native way to launch: the module of enable/serve/cpp, built once for each PyTorch, and what it is told.

Without a compiler, with a Triton that was not tried or with ENABLE_NATIVE=0 every call goes the way of Python, which
answers the same.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload

from enable.serve.floats import General
from enable.serve.modules import triton_is
from enable.serve.programs import Foreign, launchers, program
from enable.serve.shortcuts import TRIED, Looked, Shortcut
from traces.errors import UserError

NAME = "enablekit_native"
SWITCH = "ENABLE_NATIVE"  # 0: no call takes the native way
SOURCES = Path(__file__).parent / "cpp"
_SUFFIXES = (".cpp", ".h")
_SECONDS = 600  # after which a compiler has failed
_BUILD = """
import sys
from torch.utils.cpp_extension import load
load(sys.argv[1], sys.argv[3:], build_directory=sys.argv[2], extra_cflags=["-O2"], is_python_module=False)
"""
_BUILDING = threading.Lock()


class Unavailable(UserError):
    """Why calls go the way of Python here."""


class Native:
    """The module, and what it is given."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def wanted(self) -> bool:
        """Whether the call that is being answered may be given a program, and has none."""
        return bool(self._module.wanted())

    def deposit(self, program: Any, looked: Looked) -> None:
        """Have a program answer later calls like the one that is being answered, which is this."""
        self._module.deposit(program, [t.data_ptr() for t in looked.tensors], looked.floats)

    def program(self, op: OpOverload, shortcut: Shortcut, of_all: General | None = None) -> Any:
        """What answers calls of an overload as this shortcut does, None if it has no such form. of_all: where it is for
        calls with other floats, too."""
        try:
            return program(self._module, shortcut, [str(r.type) for r in op._schema.returns], of_all)
        except Foreign:
            return None

    def graph(self, shortcut: Shortcut) -> Any:
        """The same of a shortcut for many calls, which returns a list of tensors."""
        try:
            return program(self._module, shortcut, ["Tensor"] * len(shortcut.result))
        except Foreign:
            return None

    @contextmanager
    def before(self, ops: Iterable[tuple[OpOverload, str]]) -> Iterator[None]:
        """Inside the block calls of these overloads under these dispatch keys are looked at before Python is."""
        with ExitStack() as stack:
            stack.enter_context(launchers(self._module))
            for op, key in ops:
                installed = self._module.install(op._schema.name, op._schema.overload_name, key)
                stack.callback(installed.undo)
            yield


def load(directory: Path) -> Native:
    """The native way, built in this directory if it is not there. Raises Unavailable if it cannot be had."""
    if reason := _why_not():
        raise Unavailable(reason)
    return Native(_module(directory.absolute()))


def state(directory: Path) -> str:
    """Whether calls on a GPU take the native way, in words; builds nothing."""
    if reason := _why_not():
        return f"calls go the way of Python: {reason}"
    return "built" if _place(directory).is_file() else "to be built at the first registration on a GPU"


def _why_not() -> str:
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    if not triton_is(TRIED):
        import triton

        return f"Triton {triton.__version__} was not tried; {' and '.join(TRIED)} were"
    if not hasattr(torch.library, "get_kernel"):
        return f"torch {torch.__version__} is older than 2.10"
    missing = [name for name in (os.environ.get("CXX", "c++"), "ninja") if not shutil.which(name)]
    return f"there is no {missing[0]} to build it with" if missing else ""


def sources() -> list[Path]:
    """Of the module."""
    return sorted(path for path in SOURCES.iterdir() if path.suffix in _SUFFIXES)


def _place(directory: Path) -> Path:
    """Where the module is, or would be: by what it is built of."""
    tag = sysconfig.get_config_var("SOABI")
    built_of = [torch.__version__, str(torch.version.git_version), str(tag), *(p.read_text() for p in sources())]
    return directory / hashlib.sha256("\0".join(built_of).encode()).hexdigest()[:16] / f"{NAME}.so"


@cache
def _module(directory: Path) -> ModuleType:
    with _BUILDING:
        place = _place(directory)
        if not place.is_file():
            _build(place)
        spec = importlib.util.spec_from_file_location(NAME, place)
        assert spec is not None and spec.loader is not None
        try:
            module = importlib.util.module_from_spec(spec)
        except ImportError as error:
            raise Unavailable(f"{place} does not load ({error}); delete it to have it built anew") from error
        spec.loader.exec_module(module)
        return module


def _build(place: Path) -> None:
    """In a process and directory of its own: what is half built is never found. Raises Unavailable."""
    sys.stderr.write("building the native way to launch, once for this PyTorch (about 30 s)\n")
    try:
        place.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent.parent) as made:
            files = [str(path) for path in sources() if path.suffix == ".cpp"]
            command = [sys.executable, "-c", _BUILD, NAME, made, *files]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
            if done.returncode:
                lines = f"{done.stdout}\n{done.stderr}".splitlines()
                error = next(
                    (line for line in lines if "error: " in line), lines[-1] if lines else "no reason was given"
                )
                raise Unavailable(f"its compiler failed: {error.strip()[:200]}")
            place.parent.mkdir(exist_ok=True)
            (Path(made) / place.name).replace(place)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"it could not be built: {error}") from error
