"""Platforms, on which kernels run.

A platform is one YAML profile in verify/profiles/, selected by name, or a YAML file written by the user.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from traces import UserError
from traces.errors import choose_from, did_you_mean
from traces.program import program_name
from verify.documents import Document, loaded
from verify.limits import ChipLimits

PROFILES = Path(__file__).parent / "profiles"
DEVICES = ("cuda", "xpu", "sim", "cpu")  # device types that need no platform file
_LISTS = ("files", "system_files", "environment")

COMPILE, EXECUTE, DEVICE = "compile", "execute", "device"  # modes of a child that runs or compiles a kernel
TRIAL = "trial"  # mode of a child without a kernel, which calls ATen


@dataclass(frozen=True)
class Target:
    """Processor to compile for.

    Attributes:
        backend: Name of Triton's backend.
        arch: Architecture, as that backend names it.
        warp_size: Threads in a warp.
        shared_bytes: Shared memory available to one program instance.
        options: Names and values of options of a launch that does not state them itself, such as num_warps.
    """

    backend: str
    arch: int | str
    warp_size: int
    shared_bytes: int
    options: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Device:
    """One device that a confined child uses.

    Attributes:
        place: PyTorch's name for it, such as `cuda:0`.
        files: As `device_files` in Platform.
        system_files: As in Platform.
        environment: As in Platform.
        target: Architecture that kernels are compiled for, such as sm_90; `""` if no settings depend on it.
    """

    place: str
    files: tuple[str, ...] = ()
    system_files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    target: str = ""

    @classmethod
    def read(cls, fields: Any) -> Device:
        """Rebuild a device from the fields that `asdict` and JSON produced."""
        return cls(fields["place"], target=fields["target"], **{name: tuple(fields[name]) for name in _LISTS})


@dataclass(frozen=True)
class Platform:
    """Platform profile, as its YAML file declares it.

    Attributes:
        name: Platform name.
        description: One line for tables.
        targets: Processors to compile for.
        lint: Dialect name, or path to the file that declares it.
        compile_seconds: Time limit for compiling a case.
        execute_seconds: Time limit for running a case.
        memory_bytes: Host memory for a child, in addition to torch itself.
        sha256: Digest over the fields in the file and in its base files.
        typed: Name or path that selects it on the command line.
        alignment: Bytes to which every access has to be aligned, in addition to its element size.
        limits: What the chip limits, beyond its dialect.
        device: PyTorch device type on which kernels run; empty for Triton's interpreter on host memory.
        module: Python module that makes PyTorch know the device, as it is imported; empty for a device of PyTorch's.
        dispatch_key: Dispatch key under which kernels are registered for the device.
        launcher: `triton` if the driver of a Triton plugin launches kernels, `interpreter` if Triton's interpreter runs
            them on copies of the device's memory.
        device_files: Files that a confined child opens to reach the device (globs).
        system_files: Files that the driver reads.
        environment: The user's environment variables that the driver needs.
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
    alignment: int = 0  # bytes to which every access has to be aligned, beyond its element size
    limits: ChipLimits = field(default_factory=ChipLimits)
    device: str = ""
    module: str = ""
    dispatch_key: str = "PrivateUse1"
    launcher: str = "triton"
    device_files: tuple[str, ...] = ()
    system_files: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()

    def devices(self) -> tuple[Device, ...]:
        """Return the devices on this machine, or none if kernels are interpreted; raise UserError if one is missing."""
        if not self.run_device:
            return ()
        import torch

        from verify.child.aiming import target

        here = torch.accelerator.current_accelerator()
        if here is None or here.type != self.device or not self.fits():
            raise UserError(
                f"platform {self.name}: this machine or its PyTorch {torch.__version__} has no such device; "
                "choose --platform sim, or compile only: "
                f"{program_name()} verify --all --platform {self.typed} --compile-only"
            )
        count = torch.accelerator.device_count()
        extra = (self.device_files, self.system_files, self.environment)
        targets = [target(index) if self.device == "cuda" else "" for index in range(count)]
        return tuple(Device(f"{self.device}:{index}", *extra, aim) for index, aim in enumerate(targets))

    def fits(self) -> bool:
        """Return True if this PyTorch is built for the targets.

        Builds for several vendors use the same device name, `cuda`.
        """
        import torch

        built = "hip" if torch.version.hip else "cuda"
        return self.device != "cuda" or {t.backend for t in self.targets} == {built}

    def check_targets(self) -> None:
        """Raise UserError if the installed Triton has no backend for one of the targets."""
        if self.typed in names():
            return  # those of the toolkit are in every Triton
        import triton
        from triton.backends import backends
        from triton.backends.compiler import GPUTarget

        for target in self.targets:
            wanted = GPUTarget(target.backend, target.arch, target.warp_size)
            if not any(backend.compiler.supports_target(wanted) for backend in backends.values()):
                raise UserError(
                    f"platform {self.name}: Triton {triton.__version__} has no backend for target {target.backend}; "
                    f"there are: {', '.join(sorted(backends))}. Install the chip's Triton plugin (a package with "
                    "an entry point in triton.backends), or name another backend in targets: cuda or hip"
                )

    @property
    def mode(self) -> str:
        """Mode of the children in which kernels run."""
        return DEVICE if self.run_device else EXECUTE

    @property
    def run_device(self) -> str:
        """Device type on which the judge runs kernels; empty for Triton's interpreter on host memory."""
        return self.device if self.launcher == "triton" else ""

    def bring_up(self) -> None:
        """Import the chip's module, with the working directory first on Python's path.

        Raises:
            UserError: The module cannot be imported, or PyTorch has no such device after the import.
        """
        if not self.module:
            return
        import torch

        if (directory := str(Path.cwd())) not in sys.path[:1]:
            sys.path.insert(0, directory)
        try:
            importlib.import_module(self.module)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise UserError(
                f"platform {self.name}: module {self.module!r} cannot be imported ({type(error).__name__}: {reason}); "
                "install it, or put its directory on PYTHONPATH"
            ) from error
        here = torch.accelerator.current_accelerator()
        if here is None or here.type != self.device:
            raise UserError(
                f"platform {self.name}: PyTorch has {here.type if here else 'no'} device after import {self.module}, "
                f"not {self.device!r}; write the name with which the module renames PrivateUse1: device: NAME"
            )


def of_device(kind: str) -> str:
    """Return the platform for tensors on this device type, as `load` takes it; `sim` for `cpu` and `sim`.

    The platform of a chip is a YAML file in the working directory that has `device: KIND`.

    Raises:
        UserError: No profile is for this device type, or two files are.
    """
    if kind in ("cpu", "sim"):
        return "sim"
    for name in names():
        platform = load(name)
        if platform.device == kind and platform.fits():
            return name
    files = [path for path, device in chips() if device == kind]
    if len(files) > 1:
        raise UserError(f"device {kind!r} is in several platform files: {', '.join(files)}; keep one of them here")
    if not files:
        raise UserError(
            f"unknown device {kind!r}{choose_from(kind, DEVICES)}, or write its platform file into this directory, "
            f"with device: {kind} (docs/platforms/your-chip.md)"
        )
    return files[0]


def chips() -> Iterator[tuple[str, str]]:
    """Yield the platform files in the working directory that name a device, with that device type."""
    for path in sorted(Path().glob("*.y*ml")):
        try:
            fields = Document.read(path).data
        except UserError:
            continue
        if "base" in fields and "device" in fields:
            yield f"./{path}", str(fields["device"])


def names() -> list[str]:
    """Return the available platform names: the profiles that list targets."""
    return sorted(p.stem for p in PROFILES.glob("*.yaml") if "targets" in _read(p))


def load(name: str) -> Platform:
    """Return the platform with this name, or the one in the file at this path.

    Raises:
        UserError: The platform does not exist, or its file is invalid; the message has the line number.
    """
    if is_file(name):
        return _of_file(Path(name))
    if name not in names():
        suggestion = did_you_mean(name, names()) or ";"
        raise UserError(
            f"unknown platform {name!r}{suggestion} choose from {', '.join(names())}, or name a file: ./{name}.yaml"
        )
    fields = _read(PROFILES / f"{name}.yaml")
    return _platform(fields, _digest(fields), name)


def _digest(fields: dict[str, Any]) -> str:
    """Return a profile's digest.

    Comments, field order and the description have no effect on verdicts, so they are excluded.
    """
    stated = {name: value for name, value in fields.items() if name != "description"}
    return hashlib.sha256(json.dumps(stated, sort_keys=True, default=str).encode()).hexdigest()


def is_file(name: str) -> bool:
    """Return True if `name` is a path and not a profile name."""
    return name.endswith((".yaml", ".yml")) or "/" in name


def _platform(fields: dict[str, Any], sha256: str, typed: str) -> Platform:
    fields = fields | {name: tuple(fields.get(name, ())) for name in ("device_files", "system_files", "environment")}
    fields["targets"] = tuple(Target(**{**t, "options": _pairs(t.get("options", ()))}) for t in fields["targets"])
    return Platform(**fields, sha256=sha256, typed=typed)


def _pairs(options: Any) -> tuple[tuple[str, int], ...]:
    """Return options, a mapping or pairs, as pairs in order."""
    return tuple(sorted(dict(options).items()))


def _of_file(path: Path, above: tuple[Path, ...] = ()) -> Platform:
    """Load a user's file, whose unset fields are inherited from its `base`; `above` has the files based on it."""
    document, resolved = Document.read(path), path.resolve()
    if resolved in above:
        raise document.error(["base"], f"{path} is based on itself")
    fields = _checked(document)
    base = fields.pop("base")
    if is_file(base):
        base_platform = _of_file(path.parent / base, (*above, resolved))
    elif base in names():
        base_platform = load(base)
    else:
        raise document.error(["base"], f"unknown base {base!r}; choose from {', '.join(names())}, or name a file")
    if fields.setdefault("name", path.stem) in names():
        raise document.error(["name"], f"{fields['name']!r} is a platform of the toolkit; give yours a name of its own")
    if isinstance(fields.get("lint"), dict):
        fields["lint"] = str(resolved)
    elif is_file(fields.get("lint", "")):
        fields["lint"] = str(resolved.parent / fields["lint"])
    inherited = {name: value for name, value in vars(base_platform).items() if name not in ("sha256", "typed")}
    inherited["description"] = f"based on {base}, without a description"
    stated = {**document.data, "base": base_platform.sha256}
    if is_file(fields.get("lint", "")) and not isinstance(document.data.get("lint"), dict):
        stated["lint"] = loaded(Path(fields["lint"]))  # an edit to the dialect's own file changes verdicts, too
    sha256 = _digest(stated)
    inherited["targets"] = [vars(target) for target in base_platform.targets]
    fields["limits"] = base_platform.limits.changed(fields.get("limits", {}))
    return _platform({**inherited, **fields}, sha256, str(path))


def _checked(document: Document) -> dict[str, Any]:
    """Return the fields that a file sets; raise UserError for the first invalid one."""
    from pydantic import ValidationError

    from verify.platform_fields import Fields

    try:
        return Fields.model_validate(document.data).model_dump(exclude_unset=True) | {"base": document.data["base"]}
    except ValidationError as error:
        # report unknown fields first: a missing field may be misspelt
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        location = tuple(step for step in first["loc"] if step != "[key]" and not str(step).startswith("constrained-"))
        if location == ("base",) and first["type"] == "missing":
            raise document.error([], "no base: say from which platform the rest is taken, such as base: sim") from error
        if first["type"] != "extra_forbidden":
            stated = first["input"]
            problem = first["msg"].removeprefix("Value error, ")
            problem += f", not {stated!r}" if isinstance(stated, str | int | float) else ""
            raise document.error(location, f"{'.'.join(map(str, location))}: {problem}") from error
        near = get_close_matches(str(location[-1]), Fields.known(), 1)
        hint = f"; do you mean {near[0]}?" if near else f"; there are: {', '.join(Fields.known())}"
        raise document.error(location, f"unknown field {'.'.join(map(str, location))}{hint}") from error


@cache
def _read(path: Path) -> dict[str, Any]:
    """Return a packaged profile's fields."""
    fields = loaded(path)
    return fields if isinstance(fields, dict) else {}
