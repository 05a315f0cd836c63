"""Check this machine for `enable doctor`; each check tries the feature itself."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from traces import UserError


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check; `ok` is False if some command of the toolkit cannot work here."""

    name: str
    ok: bool
    detail: str


def examine(workspace: Path) -> list[Diagnosis]:
    """Run every check; none raises an error."""
    checks: dict[str, Callable[[], str]] = {
        "python": lambda: f"{sys.version.split()[0]}, {os.cpu_count()} cores",
        "torch": _torch,
        "triton": _triton,
        "platforms": _platforms,
        "sandbox": _sandbox,
        "sim": _children,
        "library": _library,
        "native": lambda: _native(workspace),
        "workspace": lambda: _workspace(workspace),
        "llm": _llm,
    }
    return [_run(name, check) for name, check in checks.items()]


def _run(name: str, check: Callable[[], str]) -> Diagnosis:
    """Run one check and turn an error into its result."""
    try:
        return Diagnosis(name, True, check())
    except UserError as error:
        return Diagnosis(name, False, str(error))
    except Exception as error:  # noqa: BLE001 - the error is this check's result
        return Diagnosis(name, False, f"{type(error).__name__}: {error}".split("\n")[0])


def _torch() -> str:
    import torch

    cuda = f"{torch.cuda.device_count()} CUDA devices" if torch.cuda.is_available() else "no CUDA device"
    return f"{torch.__version__}, {cuda}"


def _triton() -> str:
    return importlib.metadata.version("triton")


def _platforms() -> str:
    from verify import platforms

    return ", ".join(f"{name} ({platforms.load(name).description})" for name in platforms.names())


def _sandbox() -> str:
    from verify.sandbox import confine

    return confine.level()


def _children() -> str:
    """Judge the smoke kernel: a child starts, compiles for the target and executes."""
    from verify.judging.smoke import smoke

    return smoke()


def _library() -> str:
    from generate.kernel_library import KERNELS, Library

    kernels = list(Library(KERNELS))
    return f"{len(kernels)} kernel files, {sum(len(k.overloads) for k in kernels)} overloads before derivation"


def _native(workspace: Path) -> str:
    """Return the state of native launches on a GPU; a missing native module is no failure."""
    from enable.serve.native import state
    from enable.workspace import Workspace

    return state(Workspace(workspace).native)


def _workspace(path: Path) -> str:
    nearest = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise UserError(f"{nearest} is not a directory; name another workspace with --workspace DIR")
    with tempfile.TemporaryFile(dir=nearest):
        return f"{path} (writable)"


def _llm() -> str:
    key = "OPENAI_API_KEY is set" if os.environ.get("OPENAI_API_KEY") else "no OPENAI_API_KEY (needed for --llm openai)"
    return f"{key}; replay and manual need none"
