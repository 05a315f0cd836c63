"""Where kernels run: a platform is one YAML profile in verify/profiles/, found by its name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from traces import UserError

PROFILES = Path(__file__).parent / "profiles"


@dataclass(frozen=True)
class Target:
    """A processor to compile for. shared_bytes: shared memory that one program instance can have."""

    backend: str
    arch: int | str
    warp_size: int
    shared_bytes: int


@dataclass(frozen=True)
class Platform:
    """A profile as its YAML file states it; sha256 is that of the file. memory_bytes: a child's own, beyond torch's."""

    name: str
    description: str
    targets: tuple[Target, ...]
    lint: str
    compile_seconds: float
    execute_seconds: float
    memory_bytes: int
    sha256: str
    alignment: int = 0  # bytes to which every access has to be aligned, beyond its element's size


def names() -> list[str]:
    """The platforms there are: the profiles that list targets."""
    return sorted(p.stem for p in PROFILES.glob("*.yaml") if "targets" in _read(p))


def load(name: str) -> Platform:
    """Raises UserError if there is no such platform."""
    if name not in names():
        raise UserError(f"unknown platform {name!r}; choose from {', '.join(names())}")
    path = PROFILES / f"{name}.yaml"
    fields = _read(path)
    targets = tuple(Target(**t) for t in fields.pop("targets"))
    return Platform(**fields, targets=targets, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def _read(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded if isinstance(loaded, dict) else {}
