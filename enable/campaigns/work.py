"""A campaign's directory, and what a process needs to work on it: cases, judge and models."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from enable.campaigns.selection import trace_of
from enable.cover.session import Session
from enable.refine.holding import Holder, Terms
from enable.refine.refinement import Refinement
from enable.workspace import Workspace
from generate.campaign import Campaign
from generate.llm import Options, Price, Provider, load_provider
from generate.llm.budget import Budget, Budgeted
from traces import UserError
from traces.format import sync_directory, write_durably

FORMAT = 1
_FILE, _RESULTS = "campaign.json", "results.jsonl"


@dataclass(frozen=True)
class Place:
    """A campaign's directory."""

    path: Path

    @property
    def dialogs(self) -> Path:
        return self.path / "dialogs"

    def begun(self) -> dict[str, Any] | None:
        """What campaign.json holds, None before the campaign began. Raises UserError if it is damaged."""
        try:
            told = json.loads((self.path / _FILE).read_text(encoding="utf-8"))
            if told["format"] != FORMAT:
                raise UserError(f"{self.path / _FILE}: format {told['format']} is unknown; this program reads {FORMAT}")
            if not all(isinstance(told[name], dict) for name in ("settings", "operators")):
                raise TypeError("settings and operators are tables")
            return dict(told)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path / _FILE}: damaged ({error!r}); begin anew with --restart") from error

    def begin(self, told: dict[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_durably(self.path / _FILE, [json.dumps({"format": FORMAT, **told}, indent=1).encode()])

    def results(self) -> list[dict[str, Any]]:
        """The last line of each operator; a line that was not fully written is none."""
        try:
            lines = (self.path / _RESULTS).read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        try:
            found = [json.loads(line) for line in lines]
            return list({row["overload"]: row for row in found}.values())
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path / _RESULTS}: damaged ({error!r}); begin anew with --restart") from error

    def add(self, row: dict[str, Any]) -> None:
        """On the disk when this returns."""
        path = self.path / _RESULTS
        existed = path.exists()
        with open(path, "ab") as file:
            whole = path.read_bytes().rpartition(b"\n")
            file.truncate(len(whole[0]) + len(whole[1]))  # what a killed run began to write
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if not existed:
            sync_directory(self.path)

    def put_aside(self) -> None:
        """Leave the name to a new campaign; the old one is kept beside it."""
        if self.path.exists():
            number = 1 + sum(1 for _ in self.path.parent.glob(f"{self.path.name}.old-*"))
            self.path.rename(self.path.with_name(f"{self.path.name}.old-{number}"))


def place_of(workspace: Workspace, name: str) -> Place:
    return Place(workspace.root / "campaigns" / name)


def options_of(campaign: Campaign, role: str = "generator") -> Options:
    """Of the model that has this role: generator or summarizer."""
    model = campaign.model
    name, price = model.name, model.price
    if role == "summarizer":
        name, price = model.summarizer, model.summarizer_price or model.price
    return Options(name, model.base_url, model.recordings, price=price_of(price))


def price_of(told: tuple[float, float] | None) -> Price:
    return Price(*told) if told else Price()


class Work:
    """What a process needs to hold the dialogs of a campaign: cases, judge and models. A context manager."""

    def __init__(self, workspace: Workspace, base: Path | None, campaign: Campaign, tests: int | None = None) -> None:
        self.campaign, self.place = campaign, place_of(workspace, campaign.name)
        self.session = Session(workspace, base, campaign.platform, tests or campaign.tests)

    def __enter__(self) -> Work:
        self.session.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.session.__exit__(*error)

    @cached_property
    def refinement(self) -> Refinement:
        """Reads the trace when it is first asked for."""
        campaign = self.campaign
        own = (campaign.self_consistent, campaign.few_cases)
        return Refinement(self.session, [trace_of(campaign)], campaign.dtypes, *own)

    def holder(self, budget: Budget, words: Sequence[str]) -> Holder:
        """words: after `enable`, that ask for the campaign. Raises UserError where a model cannot work."""
        command = lambda overload: shlex.join(["enable", *words])  # noqa: E731
        model = self.campaign.model
        terms = Terms(self.campaign.machine_limits(), self.campaign.switches(), self.place.dialogs, command, once=True)
        summarizer = self._model("summarizer", budget) if model.summarizer else None
        return Holder(self.refinement, self._model("generator", budget), terms, summarizer)

    def _model(self, role: str, budget: Budget) -> Provider:
        options = options_of(self.campaign, role)
        return Budgeted(load_provider(self.campaign.model.provider, options), budget, options.price)
