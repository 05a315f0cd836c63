"""Load kernel files as modules, and describe errors by their lines."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from verify.child.aiming import aim
from verify.child.reach import KERNEL, marked
from verify.contract.callees import serving
from verify.linking import told_line

MODULE = "enable_kernel_"  # prefix of a kernel file's module name; the role follows


def load_wrappers(
    sources: dict[str, str],
    directory: Path,
    calls: dict[str, dict[str, str]] | None = None,
    watched: bool = False,
    target: str = "",
) -> dict[str, Any]:
    """Write kernel files to a directory, load them, and return their wrappers by role (`kernel`, `copy`, ...).

    Args:
        sources: Source text by role.
        directory: Directory for the files.
        calls: For each role, the overloads that its wrapper may call, with the roles that serve them.
        watched: True to add marks to the KERNEL file that record the statements that run.
        target: Target whose settings are used; `""` selects settings for any target.
    """
    plain: dict[str, Any] = {"copy": None}
    for role, source in sources.items():
        path = written(source, directory, role)
        name = f"{MODULE}{role}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # Triton looks up a kernel's module by name
        if watched and role == KERNEL:
            exec(compile(marked(ast.parse(source), outcomes=True), str(path), "exec"), vars(module))
        else:
            spec.loader.exec_module(module)
        aim(module, target)
        plain[role] = module.wrapper

    def served(role: str) -> Any:
        return serving(plain[role], {o: served(callee) for o, callee in (calls or {}).get(role, {}).items()})

    return {role: served(role) for role in plain}


def aim_loaded(roles: Iterable[str], target: str) -> None:
    """Make the kernel files with these roles use the settings for another target."""
    for role in roles:
        aim(sys.modules[f"{MODULE}{role}"], target)


def written(source: str, directory: Path, role: str) -> Path:
    """Write the source to the file for this role, and return its path."""
    path = directory / f"{role}.py"
    path.write_text(source, encoding="utf-8")
    return path


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def described(error: BaseException, directory: str) -> str:
    """Describe the innermost error in a chain of causes, and the kernel-file lines that led to it."""
    innermost = list(_chain(error))[-1]
    lines = _frames(error.__traceback__, directory) + _frames(innermost.__traceback__, directory)
    shown = list(dict.fromkeys(lines))
    return "\n".join([f"{type(innermost).__name__}: {innermost}", *shown])


def _frames(tb: TracebackType | None, directory: str) -> list[str]:
    frames = [f for f in traceback.extract_tb(tb) if f.filename.startswith(directory)]
    locations = [told_line("".join(linecache.getlines(f.filename)), f.lineno or 0) for f in frames]
    return [
        f"  {location}, in {f.name}: {(f.line or '').strip()}" for location, f in zip(locations, frames, strict=True)
    ]
