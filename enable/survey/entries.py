"""Read and validate the TOML file with the models for a survey.

    steps = 3                          # training steps per model

    [models.opt]
    target = "transformers:OPTForCausalLM"
    batch = 2
    set = {num_hidden_layers = 2, hidden_size = 64}

The key under `models` names the model's row and its trace.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from enable.naming import TRACE_NAME
from generate.validation import first_error
from traces import UserError
from traces.errors import choose_from, read_problem
from traces.program import program_name


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelEntry(_Table):
    """A model: the arguments for `enable capture` and `enable run`.

    Attributes:
        target: Model to capture.
        batch: Batch size; None for the default.
        optimizer: Optimizer; None for the default.
        set: Settings for the target, by name.
    """

    target: str = Field(min_length=1)
    batch: int | None = Field(default=None, ge=1)
    optimizer: str | None = None
    set: dict[str, Any] = {}

    def words(self) -> list[str]:
        """Return the arguments for the two commands."""
        options = [("--batch", self.batch), ("--optimizer", self.optimizer)]
        options += [("--set", f"{name}={_text(value)}") for name, value in self.set.items()]
        return [self.target, *(word for name, value in options if value is not None for word in (name, str(value)))]


class Survey(_Table):
    """A survey's settings.

    Attributes:
        steps: Training steps per model.
        models: Models by name.
    """

    steps: int = Field(default=3, ge=1)
    models: dict[str, ModelEntry] = Field(min_length=1)

    @field_validator("models")
    @classmethod
    def _are_named(cls, models: dict[str, ModelEntry]) -> dict[str, ModelEntry]:
        """Raise ValueError if a model's name cannot be a trace name."""
        invalid = next((name for name in models if not TRACE_NAME.fullmatch(name)), None)
        if invalid is not None:
            raise ValueError(f"the name {invalid!r} is not letters, digits and . _ + -")
        return models


def load(path: Path, only: list[str]) -> Survey:
    """Return the models in a file.

    Args:
        path: TOML file.
        only: Names that select some models; empty for all.

    Raises:
        UserError: If the file is invalid or a name is unknown; the message has one line.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(
            f"{path}: cannot be read as TOML ({read_problem(error)}); see: {program_name()} survey --help"
        ) from error
    try:
        survey = Survey.model_validate(content)
    except ValidationError as error:
        kind = ModelEntry if error.errors()[0]["loc"][:1] == ("models",) else Survey
        raise UserError(
            f"{path}: {first_error(error, kind.model_fields)}; see: {program_name()} survey --help"
        ) from error
    unknown = next((name for name in only if name not in survey.models), None)
    if unknown is not None:
        raise UserError(f"{path} has no model {unknown!r}{choose_from(unknown, survey.models)}")
    chosen = {name: entry for name, entry in survey.models.items() if not only or name in only}
    return survey.model_copy(update={"models": chosen})


def _text(value: Any) -> str:
    """Return a setting's value as text for `--set`."""
    return value if isinstance(value, str) else json.dumps(value)
