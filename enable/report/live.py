"""Collect the state of a workspace for the live page, while other commands write to it.

Nothing is judged and nothing is written. Campaigns and dialogs come from their journals (enable/refine/dialogs.py),
coverage from the traces and the stored verdicts (enable/report/live_coverage.py). A file is read again only after it
changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from enable.campaigns.campaign import summary
from enable.campaigns.work import CampaignDirectory, directory_of, price_of
from enable.refine.dialogs import DAMAGED, NOBODY, DialogRun, runs
from enable.refine.holding import NOT_BEGUN, WAITING
from enable.report.dialogs import dialog_data
from enable.report.live_coverage import LiveCoverage
from enable.report.stamps import FileCache, stamp_of
from enable.workspace import Workspace
from generate.journal import NAME, Record, read_journal, usage
from generate.machine import Stage
from traces import UserError
from traces.errors import did_you_mean
from verify.outcome import Outcome

REFRESH_SECONDS = 1.0  # between two readings of the workspace, which all viewers share
LARGEST_SHARE = 0.25  # time spent on reading, as a share, so that a large workspace does not slow the run down
MOST_DIALOGS = 400  # in the table, the latest first
_FAILED = (Stage.OUT_OF_DIALOGS, Stage.ABORTED, DAMAGED)
_OPEN = (NOT_BEGUN, WAITING)  # exits that leave an operator to a later run
_COUNTS = ("calls", "prompt_tokens", "completion_tokens")


class LiveReport:
    """The state of one workspace, for any number of viewers."""

    def __init__(
        self,
        workspace: Workspace,
        base: Path | None,
        traces: Sequence[str],
        campaigns: Sequence[str],
        platforms: Sequence[str],
    ) -> None:
        """Check the names, and read nothing yet.

        Args:
            workspace: The workspace.
            base: Directory of the base library, or None for the packaged one.
            traces: Trace names; without any, all traces that the workspace has at the time of a reading.
            campaigns: Campaign names; without any, all campaigns and all dialogs outside campaigns.
            platforms: Platform names.

        Raises:
            UserError: The workspace, a trace, a campaign or a platform does not exist.
        """
        if not workspace.root.is_dir():
            record = workspace.command("capture", "nanogpt")
            raise UserError(f"no workspace {workspace.root}; name one with --workspace DIR, or begin it: {record}")
        known = sorted(path.parent.name for path in (workspace.root / "campaigns").glob("*/dialogs"))
        for name in campaigns:
            if name not in known:
                choices = f"{did_you_mean(name, known)} (campaigns: {', '.join(known) or 'none'})"
                follow = f"to follow the whole workspace: {workspace.command('report', '--serve')}"
                raise UserError(f"no campaign {name!r} in {workspace.root}{choices}; {follow}")
        self._workspace, self._names = workspace, tuple(campaigns)
        follows_traces = bool(traces) or not campaigns
        self._coverage = [
            LiveCoverage(workspace, base, platform, traces) for platform in dict.fromkeys(platforms) if follows_traces
        ]
        self._journals, self._rows = FileCache[list[Record]](), FileCache[dict[str, Any]]()
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {}
        self._runs: dict[str, DialogRun] = {}
        self._due = 0.0

    def state(self) -> dict[str, Any]:
        """Return the latest state; the workspace is read again if that is due."""
        with self._lock:
            if time.monotonic() >= self._due:
                begun = time.monotonic()
                self._state = self._read()
                ended = time.monotonic()
                self._due = max(begun + REFRESH_SECONDS, ended + (ended - begun) * (1 / LARGEST_SHARE - 1))
            return self._state

    def dialog(self, key: str) -> dict[str, Any] | None:
        """Return the rounds of one dialog run, or None if no run in the latest state has this key.

        Raises:
            UserError: The journal is damaged.
        """
        with self._lock:
            run = self._runs.get(key)
        return dialog_data(run.campaign, run) if run else None

    def _read(self) -> dict[str, Any]:
        """Read the workspace."""
        problems: list[str] = []
        data: dict[str, Any] = {"models": [], "overloads": [], "campaigns": [], "dialogs": []}
        for coverage in self._coverage:
            with _noted(problems):
                unread, models, overloads = coverage.read()
                problems += unread
                data["models"] += models
                data["overloads"] += overloads
        with _noted(problems):
            self._read_dialogs(data)
        return {**data, "problems": problems}

    def _read_dialogs(self, data: dict[str, Any]) -> None:
        """Add the campaigns and their dialogs to `data`."""
        rows = []
        self._runs = {}
        for name in self._names or (None,):
            for run in runs(self._workspace, campaign=name, read=self._records):
                rows.append(self._row(run))
                self._runs[rows[-1]["id"]] = run
        directories = sorted(p for p in (self._workspace.root / "campaigns").glob("*") if p.is_dir())
        for name in self._names or [path.name for path in directories]:
            state = (directory := directory_of(self._workspace, name)).begun()
            if state is not None:
                of_campaign = [row for row in rows if row["campaign"] == name]
                data["campaigns"].append(_campaign(directory, state, of_campaign))
        outside = [row for row in rows if not row["campaign"]]
        if outside:
            data["campaigns"].append(_outside(outside))
        rows.sort(key=lambda row: row["changed"], reverse=True)
        data["dialogs"] = [_shown(row) for row in rows[:MOST_DIALOGS]]

    def _records(self, journal: Path) -> list[Record]:
        """Return a journal's records; an incomplete last line is skipped."""
        return self._journals.get(journal, stamp_of([journal]), lambda: read_journal(journal, torn=True))

    def _row(self, run: DialogRun) -> dict[str, Any]:
        """Return the table row of a dialog run."""
        journal = run.directory / NAME
        row = self._rows.get(journal, stamp_of([journal]), lambda: _dialog_row(run))
        turn = NOBODY if run.problem else run.turn(row["state"])
        about = {"id": f"{run.campaign}/{run.overload}/{run.directory.name}", "latest": run.latest, "turn": turn}
        return {**row, **about}


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    """Add an error in the block to `problems`. Files may vanish, as with --restart; the next reading sees the rest."""
    try:
        yield
    except (UserError, OSError) as error:
        problems.append(" ".join(str(error).split("\n")))


def _dialog_row(run: DialogRun) -> dict[str, Any]:
    """Return the part of a run's row that depends on its journal alone."""
    info = (run.directory / NAME).stat()
    row: dict[str, Any] = {"overload": run.overload, "campaign": run.campaign, "run": run.directory.name}
    row |= {"changed": info.st_mtime, "size": info.st_size}
    if run.problem:
        return {
            **row,
            **dict.fromkeys(_COUNTS, 0),
            "stage": DAMAGED,
            "latest_outcome": run.problem,
            "state": None,
            "usage": [],
        }
    state, used = run.state, list(usage(run.records))
    latest = Outcome.PASS if state.stage is Stage.PASSED else state.cause or state.flaw or state.outcome
    return {
        **row,
        "calls": len(used),
        "prompt_tokens": sum(prompt for _, prompt, _ in used),
        "completion_tokens": sum(completion for _, _, completion in used),
        "stage": str(state.stage),
        "latest_outcome": latest,
        "state": state,
        "usage": used,
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a dialog row without the fields that are for this module alone."""
    return {key: value for key, value in row.items() if key not in ("state", "usage")}


def _campaign(directory: CampaignDirectory, state: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a campaign's row: its operators by the way they ended, and the cost of all its answers."""
    model = state["settings"]["model"]
    totals = summary(directory.path.name, state, directory.results())
    exits = {name: count for name, count in totals["exits"].items() if name not in _OPEN}
    passed = exits.get("PASSED", 0)
    return {
        "campaign": directory.path.name,
        "model": " ".join(str(model[key]) for key in ("provider", "name") if model[key]),
        "total": totals["total"],
        "ended": sum(exits.values()),
        "passed": passed,
        "failing": sum(exits.values()) - passed,
        **_cost(rows, model["price"], model["summarizer_price"] or model["price"]),
    }


def _outside(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row for the dialogs outside campaigns, which `enable refine` holds."""
    stages = [row["stage"] for row in rows if row["latest"]]
    passed, failing = stages.count(Stage.PASSED), sum(stage in _FAILED for stage in stages)
    counts = {"total": len(stages), "ended": passed + failing, "passed": passed, "failing": failing}
    return {"campaign": "", "model": "", **counts, **_cost(rows, None, None)}


def _cost(
    rows: list[dict[str, Any]], price: tuple[float, float] | None, summarizer_price: tuple[float, float] | None
) -> dict[str, Any]:
    """Return the answers, tokens and money in dialog rows; the money is None if there is no price."""
    prices = {"generate": price_of(price), "summarize": price_of(summarizer_price)}
    money = sum(prices[purpose].of(prompt, answer) for row in rows for purpose, prompt, answer in row["usage"])
    return {**{name: sum(row[name] for row in rows) for name in _COUNTS}, "money": money if price else None}
