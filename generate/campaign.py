"""Define and validate a campaign's settings, read from one TOML file.

    query = "lacking in opinfo"        # or operators = ["aten::exp", "softmax"]
    dtypes = ["float32", "bfloat16"]
    workers = 8

    [model]
    provider = "openai"
    name = "gpt-5"

Every setting has a default, except that either `query` or `operators` is required. The table in docs/campaigns.md is
generated from `fields`.
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
from traces.errors import read_problem

QUERY = re.compile(r"(failing|lacking|every) in (\S+)")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
_LIMITS, _SWITCHES = DialogLimits(), Switches()


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Model(_Table):
    """Settings for the model that answers."""

    provider: str = Field(default="replay", description="manual, openai, replay or turns")
    name: str | None = Field(default=None, description="model that writes kernels")
    summarizer: str | None = Field(
        default=None, description="model that summarizes long reports; by default the same model"
    )
    base_url: str | None = Field(
        default=None, description="endpoint of the openai provider; by default OPENAI_BASE_URL"
    )
    recordings: Path | None = Field(
        default=None, description="directory with the replay provider's recordings, relative to this file", strict=False
    )
    temperature: float = Field(default=_LIMITS.temperature, ge=0, description="sampling temperature")
    price: tuple[float, float] | None = Field(
        default=None, description="money for a million prompt tokens and for a million answer tokens", strict=False
    )
    summarizer_price: tuple[float, float] | None = Field(
        default=None, description="the same for the summarizer; by default the same price", strict=False
    )


class Bounds(_Table):
    """Limits for a dialog."""

    dialogs: int = Field(default=_LIMITS.dialogs, ge=1, description="dialogs per operator")
    calls: int = Field(default=_LIMITS.calls, ge=1, description="answers per dialog")
    context: int = Field(default=_LIMITS.context, ge=1, description="tokens per dialog")
    answer: int = Field(default=_LIMITS.answer, ge=1000, description="characters per answer")
    repeats: int = Field(
        default=_LIMITS.repeats, ge=1, description="answers that repeat an earlier one before a dialog ends"
    )
    report: int = Field(
        default=_LIMITS.report, ge=200, description="characters that a report may have without being summarized"
    )


class Spending(_Table):
    """Limits for all dialogs in the campaign together."""

    calls: int | None = Field(default=None, ge=1, description="answers")
    tokens: int | None = Field(default=None, ge=1, description="tokens in prompts and answers")
    money: float | None = Field(default=None, gt=0, description="in the unit of model.price")


class States(_Table):
    """The state machine's optional states."""

    lint: bool = Field(default=_SWITCHES.lint, description="check answers against the dialect before they are run")
    summarize: bool = Field(default=_SWITCHES.summarize, description="summarize long reports")
    debug: bool = Field(default=_SWITCHES.debug, description="locate the line that crashed")


class Campaign(_Table):
    """A campaign's settings.

    The query selects a trace's operators: those that fail, those without a kernel, or all.
    """

    name: str = Field(
        default="", description="name for the directory under campaigns/; by default derived from the other settings"
    )
    operators: tuple[str, ...] = Field(default=(), description="overloads, or OpInfo's operators", strict=False)
    query: str = Field(default="", description='"failing in TRACE", "lacking in TRACE" or "every in TRACE"')
    categories: tuple[str, ...] = Field(
        default=(), description="only operators in these categories; by default all", strict=False
    )
    most: int | None = Field(default=None, ge=1, description="maximum number of operators")
    trace: str = Field(default="opinfo", description="trace with the cases for `operators`")
    dtypes: tuple[str, ...] = Field(
        default=(), description="only cases in these dtypes; by default all that were recorded", strict=False
    )
    platform: str = Field(default="sim", description="platform that candidates run on")
    workers: int = Field(default=4, ge=1, description="concurrent dialogs")
    tests: int | None = Field(
        default=None, ge=1, description="candidates tested concurrently; by default one per core, at most 8"
    )
    engine: Literal["local", "ray"] = Field(default="local", description="local or ray")
    address: str | None = Field(default=None, description="address of a Ray cluster; by default a local one is started")
    accept: bool = Field(
        default=True, description="add passing kernels to the library; false keeps them in the campaign only"
    )
    self_consistent: bool = Field(
        default=False, description="wrappers may call operators that the library has verified"
    )
    few_cases: bool = Field(default=False, description="accept kernels that passed fewer than 5 independent cases")
    model: Model = Model()
    limits: Bounds = Bounds()
    budget: Spending = Spending()
    states: States = States()

    @field_validator("name")
    @classmethod
    def _is_name(cls, value: str) -> str:
        """Raise ValueError if the name cannot be a directory name."""
        if value and not _NAME.fullmatch(value):
            raise ValueError("has to be letters, digits, '.', '_' and '-'")
        return value

    @field_validator("query")
    @classmethod
    def _is_query(cls, value: str) -> str:
        """Raise ValueError if the query has an unknown form."""
        if value and not QUERY.fullmatch(value):
            raise ValueError("is none of: failing in TRACE, lacking in TRACE, every in TRACE")
        return value

    @model_validator(mode="after")
    def _has_work(self) -> Campaign:
        """Raise ValueError unless exactly one of operators and query is set, and a money budget has a price."""
        if bool(self.query) == bool(self.operators):
            raise ValueError("operators or query: name one of the two")
        if self.budget.money is not None and self.model.price is None:
            raise ValueError("budget.money needs model.price")
        return self

    def machine_limits(self) -> DialogLimits:
        """Return the limits for the state machine."""
        bounds = self.limits
        return DialogLimits(temperature=self.model.temperature, **bounds.model_dump())

    def switches(self) -> Switches:
        """Return the switches for the state machine."""
        return Switches(self.states.lint, self.states.summarize, self.states.debug)

    def of_work(self) -> dict[str, Any]:
        """Return the settings that affect the results: without parallelism, engine, budget and name."""
        return self.model_dump(mode="json", exclude={"workers", "tests", "engine", "address", "budget", "name"})


def load(path: Path | None, **options: Any) -> Campaign:
    """Return a campaign from a file, with options that override the file.

    Args:
        path: TOML file; None for options alone.
        **options: Fields by name; `model__name` is the field `name` in the table `model`. None and () mean not given.

    Raises:
        UserError: If the file or a value is invalid; the text is one line.
    """
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"{path}: cannot be read as TOML ({read_problem(error)}); see docs/campaigns.md") from error
        model = settings.get("model")
        if isinstance(model, dict) and isinstance(model.get("recordings"), str):
            model["recordings"] = path.parent / model["recordings"]
    overrides = {key: value for key, value in options.items() if value not in (None, ())}
    if "operators" in overrides:
        settings.pop("query", None)
    if "query" in overrides:
        settings.pop("operators", None)
    for key, value in overrides.items():
        table, _, field = key.rpartition("__")
        target = settings.setdefault(table, {}) if table else settings
        if not isinstance(target, dict):
            break  # `parse` reports it
        target[field] = value
    return parse(settings, str(path) if path else "the campaign")


def parse(settings: dict[str, Any], where: str) -> Campaign:
    """Return a validated campaign.

    Args:
        settings: Settings as in the TOML file.
        where: Source of the settings, for the message.

    Raises:
        UserError: If a field is invalid; one line names the first such field.
    """
    try:
        return Campaign.model_validate(settings)
    except ValidationError as error:
        table = error.errors()[0]["loc"][:-1]
        known = type(Campaign.model_fields[str(table[0])].default).model_fields if table else Campaign.model_fields
        raise UserError(f"{where}: {first_error(error, known)}; see docs/campaigns.md") from error


def fields() -> Iterator[tuple[str, str, str]]:
    """Yield each setting's dotted name, its default in TOML notation, and its description."""
    for name, field in Campaign.model_fields.items():
        default = field.default
        if isinstance(default, _Table):
            for inner, one in type(default).model_fields.items():
                yield f"{name}.{inner}", _toml(one.default), str(one.description)
        else:
            yield name, _toml(default), str(field.description)


def flattened(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the settings in `Campaign.model_dump` form as pairs: dotted name and value."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def _toml(value: Any) -> str:
    """Return a default in TOML notation; '-' if there is none."""
    if value is None or value in ("", ()):
        return "-"
    return {True: "true", False: "false"}.get(value, repr(value)) if isinstance(value, bool) else str(value)
