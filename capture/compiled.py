"""C++ modules that are built once for each PyTorch version if there is a compiler.

Python implements the same functions, more slowly.
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
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import torch

from traces.call_keys import INCLUDE, cpp_fields
from traces.errors import UserError

SWITCH = "ENABLE_NATIVE"  # 0 disables all native modules
_SUFFIXES = (".cpp", ".h")
_SECONDS = 600  # seconds before a compiler counts as failed
_BUILD = """
import sys
from torch.utils.cpp_extension import load
load(sys.argv[1], sys.argv[3:], build_directory=sys.argv[2], extra_cflags=["-O2"], is_python_module=False)
"""
_BUILDING = threading.Lock()


class Unavailable(UserError):
    """The reason why a module cannot be used here."""


@dataclass(frozen=True)
class NativeModule:
    """A C++ module.

    Attributes:
        name: Import name.
        sources: Directory of its own files; those in `call_keys.INCLUDE` are included too.
        does: Its purpose, for messages.
    """

    name: str
    sources: Path
    does: str

    def files(self) -> list[Path]:
        """Return the source files, without the header that `cpp_fields` generates."""
        return sorted(
            path for folder in (self.sources, INCLUDE) for path in folder.iterdir() if path.suffix in _SUFFIXES
        )

    def texts(self) -> dict[str, str]:
        """Return the sources as text, by file name."""
        return {"tensor_fields.h": cpp_fields(), **{path.name: path.read_text() for path in self.files()}}

    def built_path(self, directory: Path) -> Path:
        """Return the path of the built module; it depends on PyTorch, Python's ABI and all sources."""
        tag = sysconfig.get_config_var("SOABI")
        built_of = [torch.__version__, str(torch.version.git_version), str(tag), *self.texts().values()]
        return directory / hashlib.sha256("\0".join(built_of).encode()).hexdigest()[:16] / f"{self.name}.so"

    def load(self, directory: Path) -> ModuleType:
        """Return the module, building it in this directory if it is missing. Raise Unavailable on failure."""
        if reason := why_not():
            raise Unavailable(reason)
        return _module(self, directory.absolute())


def why_not() -> str:
    """Return the reason why no module can be built or loaded here, or an empty string."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    missing = [name for name in (os.environ.get("CXX", "c++"), "ninja") if not shutil.which(name)]
    return f"there is no {missing[0]} to build it with" if missing else ""


@cache
def _module(compiled: NativeModule, directory: Path) -> ModuleType:
    with _BUILDING:
        path = compiled.built_path(directory)
        if not path.is_file():
            _build(compiled, path)
        spec = importlib.util.spec_from_file_location(compiled.name, path)
        assert spec is not None and spec.loader is not None
        try:
            module = importlib.util.module_from_spec(spec)
        except ImportError as error:
            raise Unavailable(f"{path} does not load ({error}); delete it to have it built anew") from error
        spec.loader.exec_module(module)
        return module


def _build(compiled: NativeModule, target: Path) -> None:
    """Build the module in a separate process and directory, so that no half-built module is ever found.

    Raise Unavailable on failure.
    """
    sys.stderr.write(f"building {compiled.does}, once for this PyTorch (10 to 30 s)\n")
    try:
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent.parent) as directory:
            files = {Path(directory) / name: text for name, text in compiled.texts().items()}
            for path, text in files.items():
                path.write_text(text)
            sources = [str(path) for path in files if path.suffix == ".cpp"]
            command = [sys.executable, "-c", _BUILD, compiled.name, directory, *sources]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
            if done.returncode:
                lines = f"{done.stdout}\n{done.stderr}".splitlines()
                error = next(
                    (line for line in lines if "error: " in line), lines[-1] if lines else "no reason was given"
                )
                raise Unavailable(f"its compiler failed: {error.strip()[:200]}")
            target.parent.mkdir(exist_ok=True)
            (Path(directory) / target.name).replace(target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"it could not be built: {error}") from error
