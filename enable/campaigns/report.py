"""Report the results of campaigns: coverage, calls and causes, for each campaign and for all together.

Used by `enable campaign report`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from enable.campaigns.plots import axes_of
from enable.campaigns.work import CampaignDirectory
from generate.campaign import flattened
from generate.journal import NAME, event_of, read_journal, runs_of, slug
from generate.machine import EventKind, Flaw
from traces import UserError
from traces.errors import did_you_mean
from verify.outcome import LINT, UNREACHED, Outcome

_STEPS = (1, 2, 3, 5, 10, 15, 20, 30, 45)  # numbers of LLM calls for which the report has the cumulative coverage
_OPERATOR = ["overload", "category", "exit", "passed", "calls", "dialogs", "tokens", "model_s", "tests_s", "cause"]
_ANSWER = ["overload", "category", "number", "outcome", "cause"]
# Rank of each outcome by the checks that an answer had passed before it.
_REACHED: dict[str, int] = {
    **dict.fromkeys(map(str, Flaw), 0),
    LINT: 1,
    Outcome.COMPILE_ERROR: 2,
    **dict.fromkeys((Outcome.RUNTIME_ERROR, Outcome.CRASH, Outcome.TIMEOUT, Outcome.CHEAT), 3),
    **dict.fromkeys((Outcome.WRONG, Outcome.SKIPPED), 4),
    UNREACHED: 5,
    Outcome.PASS: 6,
}
_VARYING = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e[+-]?\d+)?|'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|\([^)]*\)")


@dataclass(frozen=True)
class CampaignResults:
    """The data for one campaign's report.

    Attributes:
        name: Name.
        settings: Settings, as stored in campaign.json.
        operators: One row per operator, including those that have not ended.
        answers: One row per judged answer.
        total: Operator count.
    """

    name: str
    settings: dict[str, Any]
    operators: pd.DataFrame
    answers: pd.DataFrame
    total: int


def read(directory: CampaignDirectory) -> CampaignResults:
    """Return the data for a campaign's report.

    Raises:
        UserError: If there is no such campaign, or if it is damaged.
    """
    state = directory.begun()
    if state is None:
        names = sorted(p.name for p in directory.path.parent.glob("*") if p.is_dir())
        name, known = directory.path.name, ", ".join(names) or "none"
        raise UserError(f"no campaign {name!r}{did_you_mean(name, names)} (campaigns: {known})")
    results = {row["overload"]: row for row in directory.results()}
    rows, answers = [], []
    for overload, category in state["operators"].items():
        judged = list(_answers(directory.dialogs / slug(overload)))
        answers += [{"overload": overload, "category": category, **answer} for answer in judged]
        row = results.get(overload, {})
        rows.append(
            {
                "overload": overload,
                "category": category,
                "exit": row.get("exit", "NOT_BEGUN"),
                "passed": row.get("exit") == "PASSED",
                "calls": row.get("calls", 0),
                "dialogs": row.get("dialogs", 0),
                "tokens": row.get("tokens", 0),
                "model_s": row.get("seconds", {}).get("model", 0.0),
                "tests_s": row.get("seconds", {}).get("tests", 0.0),
                "cause": judged[-1]["cause"] if judged else row.get("detail", ""),
            }
        )
    operators, judged_answers = pd.DataFrame(rows, columns=_OPERATOR), pd.DataFrame(answers, columns=_ANSWER)
    operators = operators.astype({"passed": bool})
    return CampaignResults(directory.path.name, state["settings"], operators, judged_answers, len(state["operators"]))


def _answers(home: Path) -> Iterator[dict[str, Any]]:
    """Yield each answer in the newest run: its number, its outcome, and the cause of a refusal."""
    journals = [run / NAME for run in runs_of(home) if (run / NAME).is_file()]
    number = 0
    for record in read_journal(journals[-1], torn=True) if journals else ():
        if "event" not in record:
            continue
        event = event_of(record)
        number += event.kind is EventKind.ANSWERED
        if event.kind is EventKind.TEST_PASSED:
            yield {"number": number, "outcome": "PASS", "cause": ""}
        elif event.kind is EventKind.TEST_FAILED:
            yield {"number": number, "outcome": event.outcome, "cause": cause(event.outcome, event.report)}
        elif event.kind is EventKind.LINT_REFUSED:
            yield {"number": number, "outcome": LINT, "cause": cause(LINT, event.report)}
        elif event.kind is EventKind.UNUSABLE:
            yield {"number": number, "outcome": event.outcome, "cause": event.outcome}
        elif event.kind is EventKind.REPEATED:
            yield {"number": number, "outcome": str(Flaw.REPEATED), "cause": str(Flaw.REPEATED)}


def cause(outcome: str, report: str) -> str:
    """Return the most informative line in a report, without names, numbers and shapes.

    These differ between operators, and without them equal causes can be grouped. The last line that begins with an
    exception's name is preferred; otherwise the first line is used. The line is cut at 120 characters.
    """
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if re.match(r"\w*(Error|Exception)\b", line)), "")
    return f"{outcome}: {_VARYING.sub('*', telling or (lines[0] if lines else ''))[:120]}"


def cumulative(campaign: CampaignResults) -> pd.Series[float]:
    """Return the percentage of operators that passed within n answers, indexed by n."""
    passed = campaign.operators[campaign.operators.passed]
    most = int(passed.calls.max()) if len(passed) else 0
    counts = [(passed.calls <= n).sum() for n in range(1, most + 1)]
    return pd.Series([100.0 * c / max(1, campaign.total) for c in counts], index=range(1, most + 1), dtype=float)


def union(campaigns: Sequence[CampaignResults]) -> dict[str, list[str]]:
    """Return the operators that passed in at least one campaign, and those that passed in none."""
    passed = {o for campaign in campaigns for o in campaign.operators[campaign.operators.passed].overload}
    all_operators = {o for campaign in campaigns for o in campaign.operators.overload}
    return {"passed": sorted(passed), "left": sorted(all_operators - passed)}


def mended(campaign: CampaignResults) -> dict[str, dict[str, int]]:
    """Return by kind of feedback how many answers got it, were followed by another answer, and then got further."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"answers": 0, "answered_again": 0, "got_further": 0})
    for _, group in campaign.answers.groupby("overload", sort=False):
        outcomes = list(group.outcome)
        for outcome, following in zip(outcomes, [*outcomes[1:], None], strict=True):
            if outcome == Outcome.PASS:
                continue
            counts[outcome]["answers"] += 1
            if following is not None:
                counts[outcome]["answered_again"] += 1
                counts[outcome]["got_further"] += _REACHED[following] > _REACHED[outcome]
    return dict(counts)


def clusters(campaigns: Iterable[CampaignResults]) -> list[dict[str, Any]]:
    """Return the causes for operators that did not pass, the most common first, with their operators."""
    operators_by_cause: dict[str, set[str]] = defaultdict(set)
    for campaign in campaigns:
        for row in campaign.operators[~campaign.operators.passed].itertuples():
            if row.exit not in ("NOT_BEGUN", "WAITING"):
                operators_by_cause[str(row.cause)].add(str(row.overload))
    ordered = sorted(operators_by_cause.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"cause": text, "operators": sorted(overloads)} for text, overloads in ordered]


def differing(campaigns: Sequence[CampaignResults]) -> dict[str, list[Any]]:
    """Return the settings that differ between the campaigns, with all their values: the axes of an ablation."""
    flat = [dict(flattened(campaign.settings)) for campaign in campaigns]
    names = list(dict.fromkeys(name for settings in flat for name in settings))
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {
        name: setting_values
        for name, setting_values in values.items()
        if any(v != setting_values[0] for v in setting_values)
    }


def report(campaigns: Sequence[CampaignResults]) -> dict[str, Any]:
    """Return the object that `enable campaign report --json` prints."""
    return {
        "campaigns": [_one(campaign) for campaign in campaigns],
        "differing": differing(campaigns),
        "union": union(campaigns),
        "causes": clusters(campaigns),
    }


def _one(campaign: CampaignResults) -> dict[str, Any]:
    """Return one campaign's part of the report."""
    rows = campaign.operators
    passed = rows[rows.passed]
    percent_by_calls = cumulative(campaign)
    categories = rows.groupby("category").passed.agg(["size", "sum"])
    return {
        "campaign": campaign.name,
        "model": " ".join(
            str(campaign.settings["model"][key]) for key in ("provider", "name") if campaign.settings["model"][key]
        ),
        "total": campaign.total,
        "passed": int(rows.passed.sum()),
        "percent": round(100 * float(rows.passed.mean()), 1) if len(rows) else 0.0,
        "exits": dict(Counter(rows.exit)),
        "calls": int(rows.calls.sum()),
        "calls_of_passed": float(passed.calls.median()) if len(passed) else None,
        "tokens": int(rows.tokens.sum()),
        "tokens_per_operator": float(rows.tokens.median()) if len(rows) else 0.0,
        "seconds": {"model": round(float(rows.model_s.sum()), 1), "tests": round(float(rows.tests_s.sum()), 1)},
        "categories": {str(c): {"total": int(r["size"]), "passed": int(r["sum"])} for c, r in categories.iterrows()},
        "passed_within_calls": {n: round(float(percent_by_calls[n]), 1) for n in _STEPS if n in percent_by_calls.index},
        "feedback": mended(campaign),
    }


def draw(campaigns: Sequence[CampaignResults], path: Path) -> None:
    """Draw cumulative coverage against LLM calls, one step curve per campaign; the suffix selects the file type.

    Raises UserError as `plots.axes_of` does.
    """
    with axes_of(path) as axes:
        for campaign in campaigns:
            percent_by_calls = cumulative(campaign)
            label = f"{campaign.name} ({campaign.total} operators)"
            axes.step([0, *percent_by_calls.index], [0.0, *percent_by_calls], where="post", label=label)
        axes.set_xlabel("LLM calls of an operator")
        axes.set_ylabel("operators that pass (%)")
        axes.set_ylim(0, 100)
        axes.legend(loc="lower right")
