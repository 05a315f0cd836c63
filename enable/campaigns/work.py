"""Manage a campaign's directory, and the cases, judge and models that a process needs to work on it."""

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
from traces.program import program_words

FORMAT = 1
_FILE, _RESULTS = "campaign.json", "results.jsonl"


@dataclass(frozen=True)
class CampaignDirectory:
    """A campaign's directory."""

    path: Path

    @property
    def dialogs(self) -> Path:
        """Return the directory with the journals."""
        return self.path / "dialogs"

    def begun(self) -> dict[str, Any] | None:
        """Return the content of campaign.json, or None before the campaign began.

        Raises:
            UserError: If the file is damaged or has an unknown format.
        """
        try:
            state = json.loads((self.path / _FILE).read_text(encoding="utf-8"))
            if state["format"] != FORMAT:
                raise UserError(
                    f"{self.path / _FILE}: format {state['format']} is unknown; this program reads {FORMAT}"
                )
            if not all(isinstance(state[name], dict) for name in ("settings", "operators")):
                raise TypeError("settings and operators are tables")
            return dict(state)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path / _FILE}: damaged ({error!r}); begin anew with --restart") from error

    def begin(self, state: dict[str, Any]) -> None:
        """Create the directory and write campaign.json."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_durably(self.path / _FILE, [json.dumps({"format": FORMAT, **state}, indent=1).encode()])

    def results(self) -> list[dict[str, Any]]:
        """Return the last result row for each operator.

        A line without a newline at its end is incomplete and is skipped.
        """
        try:
            lines = (self.path / _RESULTS).read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        try:
            rows = [json.loads(line) for line in lines]
            return list({row["overload"]: row for row in rows}.values())
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path / _RESULTS}: damaged ({error!r}); begin anew with --restart") from error

    def add(self, row: dict[str, Any]) -> None:
        """Append a result row; it is on disk when this returns."""
        path = self.path / _RESULTS
        existed = path.exists()
        with open(path, "ab") as file:
            complete_lines = path.read_bytes().rpartition(b"\n")
            # Drop an incomplete line, which a killed run may have left.
            file.truncate(len(complete_lines[0]) + len(complete_lines[1]))
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if not existed:
            sync_directory(self.path)

    def put_aside(self) -> None:
        """Rename the directory, so that a new campaign can use the name."""
        if self.path.exists():
            number = 1 + sum(1 for _ in self.path.parent.glob(f"{self.path.name}.old-*"))
            self.path.rename(self.path.with_name(f"{self.path.name}.old-{number}"))


def directory_of(workspace: Workspace, name: str) -> CampaignDirectory:
    """Return the directory for a campaign name."""
    return CampaignDirectory(workspace.root / "campaigns" / name)


def options_of(campaign: Campaign, role: str = "generator") -> Options:
    """Return the provider options for a role: "generator" or "summarizer"."""
    model = campaign.model
    name, price = model.name, model.price
    if role == "summarizer":
        name, price = model.summarizer, model.summarizer_price or model.price
    return Options(name, model.base_url, model.recordings, price=price_of(price))


def price_of(prices: tuple[float, float] | None) -> Price:
    """Return a price for a pair of numbers; zero for None."""
    return Price(*prices) if prices else Price()


class Work:
    """The cases, the judge and the models that a process needs for a campaign's dialogs. A context manager."""

    def __init__(self, workspace: Workspace, base: Path | None, campaign: Campaign, tests: int | None = None) -> None:
        """Create the session.

        Args:
            workspace: Workspace with traces and campaigns.
            base: Base library; None for the packaged one.
            campaign: Settings.
            tests: Number of parallel tests, by default the campaign's setting.
        """
        self.campaign, self.directory = campaign, directory_of(workspace, campaign.name)
        self.session = Session(workspace, base, campaign.platform, tests or campaign.tests)

    def __enter__(self) -> Work:
        self.session.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.session.__exit__(*error)

    @cached_property
    def refinement(self) -> Refinement:
        """Return the refinement; the first access reads the trace."""
        campaign = self.campaign
        acceptance_options = (campaign.self_consistent, campaign.few_cases)
        return Refinement(self.session, [trace_of(campaign)], campaign.dtypes, *acceptance_options)

    def holder(self, budget: Budget, words: Sequence[str]) -> Holder:
        """Return a holder for the campaign's dialogs.

        Args:
            budget: Budget that all calls are charged to.
            words: Words after `enable` that repeat the campaign.

        Raises:
            UserError: If a model's provider cannot be used.
        """
        command = lambda overload: shlex.join([*program_words(), *words])  # noqa: E731
        model = self.campaign.model
        terms = Terms(
            self.campaign.machine_limits(), self.campaign.switches(), self.directory.dialogs, command, once=True
        )
        summarizer = self._model("summarizer", budget) if model.summarizer else None
        return Holder(self.refinement, self._model("generator", budget), terms, summarizer)

    def _model(self, role: str, budget: Budget) -> Provider:
        """Return the provider for a role, with its calls charged to the budget."""
        options = options_of(self.campaign, role)
        return Budgeted(load_provider(self.campaign.model.provider, options), budget, options.price)
