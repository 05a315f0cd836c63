"""Which models a survey looks at: one TOML file, checked word by word.

    steps = 3                          # that each model trains

    [models.opt]
    target = "transformers:OPTForCausalLM"
    batch = 2
    set = {num_hidden_layers = 2, hidden_size = 64}

A name is that of the model's row and of its trace.
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

_SEE = "see: enable survey --help"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelEntry(_Table):
    """A model: what `enable capture` and `enable run` are given. set: settings of the target, numbers as numbers."""

    target: str = Field(min_length=1)
    batch: int | None = Field(default=None, ge=1)
    optimizer: str | None = None
    set: dict[str, Any] = {}

    def words(self) -> list[str]:
        """As arguments of the two commands."""
        options = [("--batch", self.batch), ("--optimizer", self.optimizer)]
        options += [("--set", f"{name}={_text(value)}") for name, value in self.set.items()]
        return [self.target, *(word for name, value in options if value is not None for word in (name, str(value)))]


class Survey(_Table):
    """steps: that each model trains. models: by name."""

    steps: int = Field(default=3, ge=1)
    models: dict[str, ModelEntry] = Field(min_length=1)

    @field_validator("models")
    @classmethod
    def _are_named(cls, models: dict[str, ModelEntry]) -> dict[str, ModelEntry]:
        wrong = next((name for name in models if not TRACE_NAME.fullmatch(name)), None)
        if wrong is not None:
            raise ValueError(f"the name {wrong!r} is not letters, digits and . _ + -")
        return models


def load(path: Path, only: list[str]) -> Survey:
    """The models of a file. only: names of some of them, by default all. Raises UserError in one line."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read as TOML ({error}); {_SEE}") from error
    try:
        survey = Survey.model_validate(told)
    except ValidationError as error:
        kind = ModelEntry if error.errors()[0]["loc"][:1] == ("models",) else Survey
        raise UserError(f"{path}: {first_error(error, kind.model_fields)}; {_SEE}") from error
    unknown = next((name for name in only if name not in survey.models), None)
    if unknown is not None:
        raise UserError(f"{path} has no model {unknown!r}; choose from {', '.join(survey.models)}")
    chosen = {name: entry for name, entry in survey.models.items() if not only or name in only}
    return survey.model_copy(update={"models": chosen})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
