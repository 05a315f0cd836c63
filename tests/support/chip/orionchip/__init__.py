"""`orion`: a small out-of-tree PyTorch device in C++, with two devices whose memory is host memory.

    import orionchip

    torch.empty(3, device="orion:1")

The import builds the C++ once for each PyTorch and source text, loads it, and gives PrivateUse1 the name `orion`. The
device provides memory, views, copies, `item()`, streams, events, generators and autocast's casts. Every other operator
raises NotImplementedError; there is no CPU fallback. `ENABLE_CACHE` names the directory for the build.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

import torch

_NAME = "orion_native"
_FOLDER = Path(__file__).parent
_BUILD = """
import sys
from torch.utils.cpp_extension import load
load(sys.argv[1], [sys.argv[3]], build_directory=sys.argv[2], extra_cflags=["-O1"], is_python_module=False)
"""


def _cache() -> Path:
    """Return the directory of all builds."""
    if cache := os.environ.get("ENABLE_CACHE"):
        return Path(cache).absolute() / "orionchip"
    from torch.utils.cpp_extension import get_default_build_root

    return Path(get_default_build_root()) / "orionchip"


def _built() -> Path:
    """Return the path of the library, building it first if it is missing.

    A lock lets one process build while others wait. The build happens in a separate directory, and a rename publishes
    its result, so that a build that was interrupted leaves no library.
    """
    sources = sorted(path for path in _FOLDER.iterdir() if path.suffix in {".cpp", ".h"})
    parts = [torch.__version__, str(sysconfig.get_config_var("SOABI")), *(path.read_text() for path in sources)]
    target = _cache() / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16] / f"{_NAME}.so"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_file():
            _build([path for path in sources if path.suffix == ".cpp"], target)
    return target


def _build(sources: list[Path], target: Path) -> None:
    """Compile in a child process, because `load` would also register the device from the temporary path.

    One translation unit includes all sources, since PyTorch's headers take most of the time to compile.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        unit = Path(directory) / "all.cpp"
        unit.write_text("".join(f'#include "{path}"\n' for path in sources))
        command = [sys.executable, "-c", _BUILD, _NAME, directory, str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ImportError(f"orionchip was not built:\n{done.stdout}\n{done.stderr}")
        (Path(directory) / f"{_NAME}.so").rename(target)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_NAME, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_library = _built()
torch.utils.rename_privateuse1_backend("orion")  # raises an error if this process has another device of that key
native = _loaded(_library)

from orionchip import runtime  # noqa: E402  # it needs `native`

torch._register_device_module("orion", runtime)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
