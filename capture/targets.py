"""The zoo's models by name, with settings given as text."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from traces.errors import UserError

if TYPE_CHECKING:
    from models.training import Training

_ZOO = Path(__file__).parent.parent / "models"
_NOT_MODELS = frozenset({"__init__", "training"})
_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass
class Target:
    """A model ready to be trained. settings: every setting with its value. device: where it was built."""

    name: str
    settings: dict[str, Any]
    device: str
    training: Training


def describe_models() -> dict[str, str]:
    """The first line of every model's docstring, by name. Imports no model."""
    files = sorted(p for p in _ZOO.glob("*.py") if p.stem not in _NOT_MODELS)
    return {p.stem: _first_line(p) for p in files}


def default_settings(name: str) -> dict[str, Any]:
    """Every setting of a model with its default. Raises UserError on an unknown model."""
    config = _module(name).Config
    return {field.name: field.default for field in dataclasses.fields(config)}


def _module(name: str) -> Any:
    choices = describe_models()
    if name not in choices:
        raise UserError(f"no model {name!r}; choose from {', '.join(choices)} (enable models describes them)")
    return importlib.import_module(f"models.{name}")


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def load_target(
    name: str,
    settings: Mapping[str, str] | None = None,
    batch: int | None = None,
    optimizer: str | None = None,
    device: str = "cpu",
) -> Target:
    """Build a model of the zoo. settings, batch, optimizer: what differs from the model's defaults.

    Raises UserError on an unknown model or setting, and on values that do not fit.
    """
    module = _module(name)
    given = {**(settings or {}), **_texts(batch=batch, optimizer=optimizer)}
    values = {key: parse_setting(name, module.Config, key, text) for key, text in given.items()}
    try:
        config = module.Config(**values)
        _check_device(device)
        training = module.build(config, device=device)
    except (ValueError, RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{name}: cannot be built with these settings ({reason}); see: enable models") from error
    return Target(name, dataclasses.asdict(config), device, training)


def _check_device(device: str) -> None:
    """Raise UserError unless memory can be allocated there."""
    import torch

    try:
        if torch.device(device).type not in ("cpu", "cuda"):
            raise RuntimeError("no model can be recorded there")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")[:120]
        raise UserError(f"device {device!r} cannot be used here ({reason}); use --device cpu or cuda") from error


def _texts(**values: object) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}


def parse_setting(model: str, config: type, key: str, text: str) -> Any:
    """The value of one setting, of the type that the model's Config gives it. Raises UserError."""
    kinds = get_type_hints(config)
    if key not in kinds:
        raise UserError(f"{model} has no setting {key!r}; choose from {', '.join(kinds)}")
    kind = kinds[key]
    try:
        value = _BOOLS[text.lower()] if kind is bool else kind(text)
        if kind in (int, float) and not -(2**63) <= value < 2**63:  # NaN and infinities too
            raise ValueError(text)
        return value
    except (KeyError, ValueError) as error:
        default = default_settings(model)[key]
        raise UserError(
            f"{model}: {key}={text} is not {_EXPECTED[kind]}; write it like --set {key}={default}"
        ) from error
