"""Where kernels run: a platform is one YAML profile in verify/profiles/, found by its name, or a file of the user's."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from traces import UserError
from verify.documents import Document, loaded

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
    """One device as a confined child reaches it.

    place: as PyTorch names it, `cuda:0`. target: what kernels are compiled for there, such as sm_90, or `""` where no
    settings are by it. The rest is as in Platform.
    """

    place: str
    files: tuple[str, ...] = ()
    system_files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    target: str = ""

    @classmethod
    def read(cls, told: Any) -> Device:
        """Of what `asdict` and JSON made of one."""
        return cls(told["place"], target=told["target"], **{name: tuple(told[name]) for name in _LISTS})


@dataclass(frozen=True)
class Platform:
    """A profile as its YAML file states it; sha256 is that of what the file and the files under it state.

    typed: what names it on the command line. lint: name of its dialect, or the path of the file that states it.
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
    typed: str
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

        from verify.child.aiming import target

        here = torch.accelerator.current_accelerator()
        if here is None or here.type != self.device or not self.fits():
            raise UserError(
                f"platform {self.name}: this machine or its PyTorch {torch.__version__} has no such device; "
                f"choose --platform sim, or compile only: enable verify --all --platform {self.typed} --compile-only"
            )
        count = torch.accelerator.device_count()
        extra = (self.device_files, self.system_files, self.environment)
        targets = [target(index) if self.device == "cuda" else "" for index in range(count)]
        return tuple(Device(f"{self.device}:{index}", *extra, aim) for index, aim in enumerate(targets))

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
    """The platform of this name, or of the file at this path. Raises UserError if there is none, with the line of what
    is wrong in a file."""
    if is_file(name):
        return _of_file(Path(name))
    if name not in names():
        raise UserError(f"unknown platform {name!r}; choose from {', '.join(names())}, or name a file: ./{name}.yaml")
    fields = _read(PROFILES / f"{name}.yaml")
    return _platform(fields, _digest(fields), name)


def _digest(fields: dict[str, Any]) -> str:
    """Return the digest of what a file states; comments, the order of fields and the description change no verdict."""
    stated = {name: value for name, value in fields.items() if name != "description"}
    return hashlib.sha256(json.dumps(stated, sort_keys=True, default=str).encode()).hexdigest()


def is_file(name: str) -> bool:
    """Whether it is a path that is meant, and no name of a profile."""
    return name.endswith((".yaml", ".yml")) or "/" in name


def _platform(fields: dict[str, Any], sha256: str, typed: str) -> Platform:
    fields = fields | {name: tuple(fields.get(name, ())) for name in ("device_files", "system_files", "environment")}
    fields["targets"] = tuple(Target(**t) for t in fields["targets"])
    return Platform(**fields, sha256=sha256, typed=typed)


def _of_file(path: Path, above: tuple[Path, ...] = ()) -> Platform:
    """What the file does not say is as in its `base`. above: files that are based on it."""
    document, place = Document.read(path), path.resolve()
    if place in above:
        raise document.error(["base"], f"{path} is based on itself")
    told = _checked(document)
    base = told.pop("base")
    if is_file(base):
        under = _of_file(path.parent / base, (*above, place))
    elif base in names():
        under = load(base)
    else:
        raise document.error(["base"], f"unknown base {base!r}; choose from {', '.join(names())}, or name a file")
    if told.setdefault("name", path.stem) in names():
        raise document.error(["name"], f"{told['name']!r} is a platform of the toolkit; give yours a name of its own")
    if isinstance(told.get("lint"), dict):
        told["lint"] = str(place)
    elif is_file(told.get("lint", "")):
        told["lint"] = str(place.parent / told["lint"])
    kept = {name: value for name, value in vars(under).items() if name not in ("sha256", "typed")}
    sha256 = _digest({**document.data, "base": under.sha256})
    kept["targets"] = [vars(target) for target in under.targets]
    return _platform({**kept, **told}, sha256, str(path))


def _checked(document: Document) -> dict[str, Any]:
    """The fields that a file states. Raises UserError for the first that makes no sense."""
    from pydantic import ValidationError

    from verify.platform_fields import Fields

    try:
        return Fields.model_validate(document.data).model_dump(exclude_unset=True) | {"base": document.data["base"]}
    except ValidationError as error:
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # what is missing may be misspelt
        where = first["loc"]
        if where == ("base",) and first["type"] == "missing":
            raise document.error([], "no base: say from which platform the rest is taken, such as base: sim") from error
        if first["type"] != "extra_forbidden":
            raise document.error(where, f"{'.'.join(map(str, where))}: {first['msg']}") from error
        near = get_close_matches(str(where[-1]), Fields.known(), 1)
        hint = f"; do you mean {near[0]}?" if near else f"; there are: {', '.join(Fields.known())}"
        raise document.error(where, f"unknown field {'.'.join(map(str, where))}{hint}") from error


@cache
def _read(path: Path) -> dict[str, Any]:
    """Return what a profile of the toolkit states."""
    fields = loaded(path)
    return fields if isinstance(fields, dict) else {}
