"""Where kernels run: a platform is one YAML profile in verify/profiles/, found by its name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from traces import UserError

PROFILES = Path(__file__).parent / "profiles"
_LISTS = ("files", "system_files", "environment")

COMPILE, EXECUTE, DEVICE = "compile", "execute", "device"  # the modes of a child that has a kernel
TRIAL = "trial"  # of one that has none, and asks ATen


@dataclass(frozen=True)
class Target:
    """A processor to compile for. shared_bytes: shared memory that one program instance can have."""

    backend: str
    arch: int | str
    warp_size: int
    shared_bytes: int


@dataclass(frozen=True)
class Device:
    """One device as a confined child reaches it. place: as PyTorch names it, `cuda:0`; the rest as in Platform."""

    place: str
    files: tuple[str, ...] = ()
    system_files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()

    @classmethod
    def read(cls, told: Any) -> Device:
        """Of what `asdict` and JSON made of one."""
        return cls(told["place"], *(tuple(told[name]) for name in _LISTS))


@dataclass(frozen=True)
class Platform:
    """A profile as its YAML file states it; sha256 is that of the file.

    memory_bytes: host memory of a child, beyond torch's. device: the type of PyTorch device on which kernels execute;
    empty for Triton's interpreter on host memory. device_files: what a confined child opens to reach it (globs);
    system_files: what its driver reads. environment: variables of the user's that its driver needs.
    """

    name: str
    description: str
    targets: tuple[Target, ...]
    lint: str
    compile_seconds: float
    execute_seconds: float
    memory_bytes: int
    sha256: str
    alignment: int = 0  # bytes to which every access has to be aligned, beyond its element's size
    device: str = ""
    device_files: tuple[str, ...] = ()
    system_files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()

    def devices(self) -> tuple[Device, ...]:
        """Those that this machine has, none where kernels are interpreted. Raises UserError if there has to be one."""
        if not self.device:
            return ()
        import torch

        here = torch.accelerator.current_accelerator()
        if here is None or here.type != self.device or not self.fits():
            raise UserError(
                f"platform {self.name}: this machine or its PyTorch {torch.__version__} has no such device; "
                f"choose --platform sim, or compile only: enable verify --all --platform {self.name} --compile-only"
            )
        count = torch.accelerator.device_count()
        extra = (self.device_files, self.system_files, self.environment)
        return tuple(Device(f"{self.device}:{index}", *extra) for index in range(count))

    def fits(self) -> bool:
        """Whether this PyTorch is built for the targets, where builds for several vendors call their device alike."""
        import torch

        built = "hip" if torch.version.hip else "cuda"
        return self.device != "cuda" or {t.backend for t in self.targets} == {built}

    @property
    def mode(self) -> str:
        """The mode of the children in which kernels run."""
        return DEVICE if self.device else EXECUTE


def of_device(kind: str) -> str:
    """The name of the platform for tensors on a type of device here; `sim` for the host's and for its own.

    Raises UserError if no profile is for such a device.
    """
    if kind in ("cpu", "sim"):
        return "sim"
    for name in names():
        platform = load(name)
        if platform.device == kind and platform.fits():
            return name
    raise UserError(f"no platform is for PyTorch's device {kind!r}; those there are: {', '.join(names())}")


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
    fields |= {name: tuple(fields.get(name, ())) for name in ("device_files", "system_files", "environment")}
    return Platform(**fields, targets=targets, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def _read(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded if isinstance(loaded, dict) else {}
