"""What `enable capture` can record, by name: the zoo's models, those of other libraries, and a user's own factory."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from capture.settings import Setting, parse
from traces.errors import UserError
from traces.packaging import qualified

if TYPE_CHECKING:
    from capture.factories import Program

LIBRARIES = ("transformers", "timm")
DEVICES = ("cpu", "cuda", "xpu", "sim")

_ZOO = Path(__file__).parent.parent / "models"
_NOT_MODELS = frozenset({"__init__", "criteo", "training", "rowwise_adagrad"})
_HINT = "or name transformers:CLASS, timm:MODEL or your own MODULE:FACTORY"


@dataclass
class CaptureTarget:
    """A program ready to be recorded.

    settings: those that decide what is built, with their values. device: where it was built; empty where only the
    user's own code knows. training: of a model of the zoo, a models.training.Training.
    """

    name: str
    settings: dict[str, Any]
    device: str
    training: Program


def describe_models() -> dict[str, str]:
    """The first line of every model's docstring, by name. Imports no model."""
    files = sorted(p for p in _ZOO.glob("*.py") if p.stem not in _NOT_MODELS)
    return {p.stem: _first_line(p) for p in files}


def default_settings(name: str) -> dict[str, Any]:
    """Every setting of a model of the zoo with its default. Raises UserError on an unknown model."""
    return {key: setting.default for key, setting in _settings(_module(name).Config).items()}


def trace_name(name: str) -> str:
    """What the trace of a target is called where the user does not say: safe as a file name."""
    library, _, model = name.partition(":")
    return re.sub(r"[^\w.+-]+", "-", model if library in LIBRARIES else name).strip(".-")


def load_target(
    name: str,
    settings: Mapping[str, str] | None = None,
    batch: int | None = None,
    optimizer: str | None = None,
    device: str | None = None,
) -> CaptureTarget:
    """Build what `name` says. settings, batch, optimizer, device: what differs from the defaults.

    MODULE:FACTORY imports the user's code, with the working directory first on the path, and passes batch, optimizer
    and device as settings of these names. Raises UserError on an unknown target or setting, on values that do not fit,
    and on whatever the user's code raises.
    """
    given = {**(settings or {}), **_texts(batch=batch, optimizer=optimizer)}
    if ":" in name and name.partition(":")[0] not in LIBRARIES:
        return _of_factory(name, {**given, **_texts(device=device)})
    if ":" in name:
        return _of_library(name, given, device or "cpu")
    return _of_zoo(name, given, device or "cpu")


def _of_factory(name: str, given: Mapping[str, str]) -> CaptureTarget:
    from capture import sim
    from capture.factories import load_factory

    asked = given.get("device", "")
    if asked == sim.NAME:
        _check_device(asked)
    with sim.executing(sim.on_cpu):  # it may build there
        settings, program = load_factory(name, given)
    parameter = next(program.model.parameters(), None) if program.model is not None else None
    device = str(parameter.device) if parameter is not None else asked if asked == sim.NAME else ""
    return CaptureTarget(name, settings, device, program)


def _of_library(name: str, given: Mapping[str, str], device: str) -> CaptureTarget:
    library, _, model = name.partition(":")
    _check_device(device)
    if library == "timm":
        from capture.timm_target import load_timm as load
    else:
        from capture.transformers_target import load_transformers as load
    with _able_to_build(device):
        settings, program = load(name, model, given, device)
    return CaptureTarget(name, settings, device, program)


def _of_zoo(name: str, given: Mapping[str, str], device: str) -> CaptureTarget:
    module = _module(name)
    values = parse(name, _settings(module.Config), given)
    try:
        config = module.Config(**values)
        _check_device(device)
        with _able_to_build(device):
            training = module.build(config, device=device)
    except (ValueError, RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{name}: cannot be built with these settings ({reason}); see: enable models") from error
    return CaptureTarget(name, dataclasses.asdict(config), device, training)


def _able_to_build(device: str) -> AbstractContextManager[Any]:
    """On `sim` the CPU computes what a model and its optimizer start with, whatever has a kernel."""
    from capture import sim

    return sim.executing(sim.on_cpu) if device.startswith(sim.NAME) else nullcontext()


def _module(name: str) -> Any:
    choices = describe_models()
    if name not in choices:
        raise UserError(f"no model {name!r}; choose from {', '.join(choices)} (enable models describes them), {_HINT}")
    return importlib.import_module(qualified(f"models.{name}"))


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def _settings(config: type) -> dict[str, Setting]:
    kinds = get_type_hints(config)
    return {field.name: Setting(kinds[field.name], field.default) for field in dataclasses.fields(config)}


def _check_device(device: str) -> None:
    """Raise UserError unless memory can be allocated there. Makes device sim known."""
    import torch

    from capture import sim

    if device == sim.NAME:
        sim.install()
    try:
        if torch.device(device).type not in DEVICES:
            raise RuntimeError("no model can be recorded there")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")[:120]
        raise UserError(
            f"device {device!r} cannot be used here ({reason}); use --device {', '.join(DEVICES)}"
        ) from error


def _texts(**values: object) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}
