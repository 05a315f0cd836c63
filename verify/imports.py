"""Find the files of this toolkit that a module needs: its imports, lazy ones included, and their imports in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from traces.packaging import PREFIX

_IMPORT = re.compile(r"^\s*(?:from ([\w.]+) )?import (\([^)]*\)|[^\n#]+)", re.MULTILINE)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:[^\n]*\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)


def reached(root: Path, modules: Iterable[str], exclude: str = "") -> list[Path]:
    """Return the sorted files of `modules` and of everything that they import from `root`.

    Args:
        root: Directory that contains the packages.
        modules: Dotted names of modules.
        exclude: Folder to skip, together with files that only its modules import.
    """
    files: set[Path] = set()
    waiting = [path for module in modules for path in _files(root, module)]
    while waiting:
        path = waiting.pop()
        if path not in files and not (exclude and path.is_relative_to(root / exclude)):
            files.add(path)
            waiting += _imported(root, path.read_text(encoding="utf-8"))
    return sorted(files)


def _imported(root: Path, text: str) -> Iterator[Path]:
    for package, names in _IMPORT.findall(_FOR_TYPES.sub("", text)):
        words = [name.split()[0] for name in names.strip("()\n ").split(",") if name.strip()]
        for module in [package, *(f"{package}.{word}" for word in words)] if package else words:
            yield from _files(root, module)


def _files(root: Path, module: str) -> list[Path]:
    """Return the file of the module if it belongs to this toolkit, else an empty list."""
    path = root.joinpath(*module.removeprefix(PREFIX).split("."))
    return [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
