"""What a campaign is to do: one TOML file, checked word by word.

    query = "lacking in opinfo"        # or operators = ["aten::exp", "softmax"]
    dtypes = ["float32", "bfloat16"]
    workers = 8

    [model]
    provider = "openai"
    name = "gpt-5"

Everything has a default but what to work on. docs/campaigns.md has the table, made from `fields`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from generate.machine import DialogLimits, Switches
from generate.validation import first_error
from traces import UserError

QUERY = re.compile(r"(failing|lacking|every) in (\S+)")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
_LIMITS, _SWITCHES = DialogLimits(), Switches()


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Model(_Table):
    """Who answers."""

    provider: str = Field(default="replay", description="replay, openai or manual")
    name: str | None = Field(default=None, description="the model that writes kernels")
    summarizer: str | None = Field(
        default=None, description="the model that summarises long reports; by default the same"
    )
    base_url: str | None = Field(
        default=None, description="endpoint of the openai provider; by default OPENAI_BASE_URL"
    )
    recordings: Path | None = Field(
        default=None, description="directory of the replay provider, beside this file", strict=False
    )
    temperature: float = Field(default=_LIMITS.temperature, ge=0, description="of the model")
    price: tuple[float, float] | None = Field(
        default=None, description="money for a million tokens of prompts and of answers", strict=False
    )
    summarizer_price: tuple[float, float] | None = Field(
        default=None, description="the same of the summarizer; by default equal", strict=False
    )


class Bounds(_Table):
    """How far a dialog may go."""

    dialogs: int = Field(default=_LIMITS.dialogs, ge=1, description="dialogs for an operator")
    calls: int = Field(default=_LIMITS.calls, ge=1, description="answers in a dialog")
    context: int = Field(default=_LIMITS.context, ge=1, description="tokens of a dialog")
    answer: int = Field(default=_LIMITS.answer, ge=1000, description="characters of an answer")
    repeats: int = Field(
        default=_LIMITS.repeats, ge=1, description="answers that repeat an earlier one before a dialog ends"
    )
    report: int = Field(
        default=_LIMITS.report, ge=200, description="characters of a report that are shown unsummarised"
    )


class Spending(_Table):
    """What all dialogs of the campaign together may use."""

    calls: int | None = Field(default=None, ge=1, description="answers")
    tokens: int | None = Field(default=None, ge=1, description="tokens of prompts and answers")
    money: float | None = Field(default=None, gt=0, description="in the unit of model.price")


class States(_Table):
    """States of the machine that can be left out."""

    lint: bool = Field(default=_SWITCHES.lint, description="check answers against the dialect before they are run")
    summarize: bool = Field(default=_SWITCHES.summarize, description="summarise long reports")
    debug: bool = Field(default=_SWITCHES.debug, description="look for the place of a crash")


class Campaign(_Table):
    """What is asked for. The query takes operators of a trace: those that fail, have no kernel, or all."""

    name: str = Field(default="", description="of its directory under campaigns/; by default made of the rest")
    operators: tuple[str, ...] = Field(default=(), description="overloads, or operators of OpInfo", strict=False)
    query: str = Field(default="", description='"failing in TRACE", "lacking in TRACE" or "every in TRACE"')
    categories: tuple[str, ...] = Field(default=(), description="only operators of these; by default all", strict=False)
    most: int | None = Field(default=None, ge=1, description="at most so many operators")
    trace: str = Field(default="opinfo", description="where the cases of `operators` come from")
    dtypes: tuple[str, ...] = Field(
        default=(), description="only cases of these; by default all recorded", strict=False
    )
    platform: str = Field(default="sim", description="where candidates run")
    workers: int = Field(default=4, ge=1, description="dialogs at once")
    tests: int | None = Field(
        default=None, ge=1, description="candidates tested at once; by default the cores, at most 8"
    )
    engine: Literal["local", "ray"] = Field(default="local", description="local or ray")
    address: str | None = Field(default=None, description="of a Ray cluster; by default one is started here")
    accept: bool = Field(
        default=True, description="put what passes into the library; false keeps it in the campaign alone"
    )
    self_consistent: bool = Field(
        default=False, description="wrappers may call operators that the library has verified"
    )
    few_cases: bool = Field(default=False, description="accept kernels that fewer than 5 independent cases speak for")
    model: Model = Model()
    limits: Bounds = Bounds()
    budget: Spending = Spending()
    states: States = States()

    @field_validator("name")
    @classmethod
    def _is_name(cls, value: str) -> str:
        if value and not _NAME.fullmatch(value):
            raise ValueError("has to be letters, digits, '.', '_' and '-'")
        return value

    @field_validator("query")
    @classmethod
    def _is_query(cls, value: str) -> str:
        if value and not QUERY.fullmatch(value):
            raise ValueError("is none of: failing in TRACE, lacking in TRACE, every in TRACE")
        return value

    @model_validator(mode="after")
    def _has_work(self) -> Campaign:
        if bool(self.query) == bool(self.operators):
            raise ValueError("operators or query: name one of the two")
        if self.budget.money is not None and self.model.price is None:
            raise ValueError("budget.money needs model.price")
        return self

    def machine_limits(self) -> DialogLimits:
        bounds = self.limits
        return DialogLimits(temperature=self.model.temperature, **bounds.model_dump())

    def switches(self) -> Switches:
        return Switches(self.states.lint, self.states.summarize, self.states.debug)

    def of_work(self) -> dict[str, Any]:
        """The settings that its results depend on: without how many at once, on which engine, and for how much."""
        return self.model_dump(mode="json", exclude={"workers", "tests", "engine", "address", "budget", "name"})


def load(path: Path | None, **options: Any) -> Campaign:
    """The campaign of a file, or of nothing, with options over it. None stands for an option that was not given.

    options: fields, those of tables as `model__name`. Raises UserError in one line.
    """
    told: dict[str, Any] = {}
    if path is not None:
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"{path}: cannot be read as TOML ({error}); see docs/campaigns.md") from error
        model = told.get("model")
        if isinstance(model, dict) and isinstance(model.get("recordings"), str):
            model["recordings"] = path.parent / model["recordings"]
    given = {key: value for key, value in options.items() if value not in (None, ())}
    if "operators" in given:
        told.pop("query", None)
    if "query" in given:
        told.pop("operators", None)
    for key, value in given.items():
        table, _, field = key.rpartition("__")
        (told.setdefault(table, {}) if table else told)[field] = value
    return parse(told, str(path) if path else "the campaign")


def parse(told: dict[str, Any], where: str) -> Campaign:
    """Raises UserError in one line that names the first field that is wrong."""
    try:
        return Campaign.model_validate(told)
    except ValidationError as error:
        table = error.errors()[0]["loc"][:-1]
        known = type(Campaign.model_fields[str(table[0])].default).model_fields if table else Campaign.model_fields
        raise UserError(f"{where}: {first_error(error, known)}; see docs/campaigns.md") from error


def fields() -> Iterator[tuple[str, str, str]]:
    """Each setting by its dotted name, its default as TOML has it, and what it is."""
    for name, field in Campaign.model_fields.items():
        default = field.default
        if isinstance(default, _Table):
            for inner, one in type(default).model_fields.items():
                yield f"{name}.{inner}", _toml(one.default), str(one.description)
        else:
            yield name, _toml(default), str(field.description)


def flattened(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings as `Campaign.model_dump` has them, each by its dotted name."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def _toml(value: Any) -> str:
    if value is None or value in ("", ()):
        return "-"
    return {True: "true", False: "false"}.get(value, repr(value)) if isinstance(value, bool) else str(value)
