"""Targets of `enable capture`, by name: zoo models, models of other libraries, and a user's own factory."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from capture.settings import Setting, parse
from traces.errors import UserError, choose_from
from traces.packaging import qualified
from traces.program import program_name

if TYPE_CHECKING:
    from capture.factories import Program

LIBRARIES = ("transformers", "timm")
DEVICES = ("cpu", "cuda", "xpu", "sim")

_ZOO = Path(__file__).parent.parent / "models"
_NOT_MODELS = frozenset({"__init__", "criteo", "training", "rowwise_adagrad"})
_HINT = "or name transformers:CLASS, timm:MODEL or your own MODULE:FACTORY"


@dataclass
class CaptureTarget:
    """A program that is ready to be recorded.

    Attributes:
        name: Name on the command line.
        settings: Settings that decide the build, with their values.
        device: Device on which it was built; empty if only the user's code knows.
        training: The program; for a zoo model a models.training.Training.
    """

    name: str
    settings: dict[str, Any]
    device: str
    training: Program


def describe_models() -> dict[str, str]:
    """Return the first docstring line of every zoo model, by name, without importing any model."""
    files = sorted(p for p in _ZOO.glob("*.py") if p.stem not in _NOT_MODELS)
    return {p.stem: _first_line(p) for p in files}


def default_settings(name: str) -> dict[str, Any]:
    """Return every setting of a zoo model with its default. Raise UserError for an unknown model."""
    return {key: setting.default for key, setting in _settings(_module(name).Config).items()}


def trace_name(name: str) -> str:
    """Return the default name for a target's trace, safe as a file name."""
    library, _, model = name.partition(":")
    return re.sub(r"[^\w.+-]+", "-", model if library in LIBRARIES else name).strip(".-")


def load_target(
    name: str,
    settings: Mapping[str, str] | None = None,
    batch: int | None = None,
    optimizer: str | None = None,
    device: str | None = None,
) -> CaptureTarget:
    """Build the target that `name` denotes.

    MODULE:FACTORY imports the user's code, with the working directory first on `sys.path`, and passes batch, optimizer
    and device as settings with these names.

    Args:
        name: A zoo model, transformers:CLASS, timm:MODEL or MODULE:FACTORY.
        settings: Settings that differ from the defaults, as text.
        batch: Batch size; None for the default.
        optimizer: Optimizer name; None for the default.
        device: Device to build on; None for the default.

    Returns:
        CaptureTarget: The built program.

    Raises:
        UserError: If the target or a setting is unknown, a value does not fit, or the user's code raises.
    """
    texts = {**(settings or {}), **_texts(batch=batch, optimizer=optimizer)}
    if ":" in name and name.partition(":")[0] not in LIBRARIES:
        return _of_factory(name, {**texts, **_texts(device=device)})
    if ":" in name:
        return _of_library(name, texts, device or "cpu")
    return _of_zoo(name, texts, device or "cpu")


def _of_factory(name: str, texts: Mapping[str, str]) -> CaptureTarget:
    from capture import sim
    from capture.factories import load_factory

    requested = texts.get("device", "")
    if requested == sim.NAME:
        _check_device(requested)
    with sim.executing(sim.on_cpu):  # the factory may build on `sim`, which needs an executor
        settings, program = load_factory(name, texts)
    parameter = next(program.model.parameters(), None) if program.model is not None else None
    device = str(parameter.device) if parameter is not None else requested if requested == sim.NAME else ""
    return CaptureTarget(name, settings, device, program)


def _of_library(name: str, texts: Mapping[str, str], device: str) -> CaptureTarget:
    library, _, model = name.partition(":")
    _check_device(device)
    from capture.host_fallback import computing_on_host

    if library == "timm":
        from capture.timm_target import load_timm as load
    else:
        from capture.transformers_target import load_transformers as load
    with computing_on_host(device):
        settings, program = load(name, model, texts, device)
    return CaptureTarget(name, settings, device, program)


def _of_zoo(name: str, texts: Mapping[str, str], device: str) -> CaptureTarget:
    from capture.host_fallback import computing_on_host

    module = _module(name)
    values = parse(name, _settings(module.Config), texts)
    try:
        config = module.Config(**values)
        _check_device(device)
        with computing_on_host(device):
            training = module.build(config, device=device)
    except (ValueError, RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(
            f"{name}: cannot be built with these settings ({reason}); see: {program_name()} models"
        ) from error
    return CaptureTarget(name, dataclasses.asdict(config), device, training)


def _module(name: str) -> Any:
    choices = describe_models()
    if name not in choices:
        raise UserError(
            f"no model {name!r}{choose_from(name, choices)} ({program_name()} models describes them), {_HINT}"
        )
    return importlib.import_module(qualified(f"models.{name}"))


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def _settings(config: type) -> dict[str, Setting]:
    kinds = get_type_hints(config)
    return {field.name: Setting(kinds[field.name], field.default) for field in dataclasses.fields(config)}


def _check_device(device: str) -> None:
    """Raise UserError unless memory can be allocated on the device. Install device sim if it is named."""
    from capture import sim
    from capture.host_fallback import chip

    known = (*DEVICES, *filter(None, [chip()]))
    if device.partition(":")[0] not in known:
        raise UserError(f"unknown device {device!r}{choose_from(device, known)}")
    if device == sim.NAME:
        sim.install()
    if problem := _problem(device):
        usable = [name for name in known if name == sim.NAME or not _problem(name)]
        raise UserError(f"device {device!r} cannot be used here ({problem}); choose from {', '.join(usable)}")


def _problem(device: str) -> str:
    """Return the reason why no memory can be allocated on the device; "" if it can."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        return str(error).partition("\n")[0].rstrip(".")[:120]
    return ""


def _texts(**values: object) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}
