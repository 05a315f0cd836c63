"""What campaigns have shown: coverage, calls, causes; of one, side by side, and of all together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from enable.campaigns.plots import axes_of
from enable.campaigns.work import Place
from generate.campaign import flattened
from generate.journal import NAME, event_of, read_journal, slug
from generate.machine import EventKind, Flaw
from traces import UserError
from verify.outcome import LINT, UNREACHED, Outcome

_STEPS = (1, 2, 3, 5, 10, 15, 20, 30, 45)  # LLM calls at which the cumulative coverage is told
_OPERATOR = ["overload", "category", "exit", "passed", "calls", "dialogs", "tokens", "model_s", "tests_s", "cause"]
_ANSWER = ["overload", "category", "number", "outcome", "cause"]
# How far an answer came that ended so.
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
class Told:
    """One campaign. operators: a row each, of those that have ended or wait; answers: a row for each answer judged."""

    name: str
    settings: dict[str, Any]
    operators: pd.DataFrame
    answers: pd.DataFrame
    total: int


def read(place: Place) -> Told:
    """Raises UserError if there is no such campaign or it is damaged."""
    told = place.begun()
    if told is None:
        names = sorted(p.name for p in place.path.parent.glob("*") if p.is_dir())
        raise UserError(f"no campaign {place.path.name!r}; there are: {', '.join(names) or 'none'}")
    results = {row["overload"]: row for row in place.results()}
    rows, answers = [], []
    for overload, category in told["operators"].items():
        judged = list(_answers(place.dialogs / slug(overload)))
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
    return Told(place.path.name, told["settings"], operators, judged_answers, len(told["operators"]))


def _answers(home: Path) -> Iterator[dict[str, Any]]:
    """Each answer of the newest run: its number, what judged it, and why it was refused."""
    journals = sorted(home.glob(f"run-*/{NAME}"))
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
    """The first telling line of a report without what differs from operator to operator: names, numbers, shapes."""
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if re.match(r"\w*(Error|Exception)\b", line)), "")
    return f"{outcome}: {_VARYING.sub('*', telling or (lines[0] if lines else ''))[:120]}"


def cumulative(told: Told) -> pd.Series[float]:
    """The share of the operators that passed within n answers, in percent, by n."""
    passed = told.operators[told.operators.passed]
    most = int(passed.calls.max()) if len(passed) else 0
    counts = [(passed.calls <= n).sum() for n in range(1, most + 1)]
    return pd.Series([100.0 * c / max(1, told.total) for c in counts], index=range(1, most + 1), dtype=float)


def union(campaigns: Sequence[Told]) -> dict[str, list[str]]:
    """Operators of any campaign, by whether one of them passed it."""
    passed = {o for told in campaigns for o in told.operators[told.operators.passed].overload}
    every = {o for told in campaigns for o in told.operators.overload}
    return {"passed": sorted(passed), "left": sorted(every - passed)}


def mended(told: Told) -> dict[str, dict[str, int]]:
    """By the kind of feedback: answers that it followed, and how many next answers came past what had refused them."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"answers": 0, "answered_again": 0, "got_further": 0})
    for _, group in told.answers.groupby("overload", sort=False):
        outcomes = list(group.outcome)
        for outcome, following in zip(outcomes, [*outcomes[1:], None], strict=True):
            if outcome == Outcome.PASS:
                continue
            found[outcome]["answers"] += 1
            if following is not None:
                found[outcome]["answered_again"] += 1
                found[outcome]["got_further"] += _REACHED[following] > _REACHED[outcome]
    return dict(found)


def clusters(campaigns: Iterable[Told]) -> list[dict[str, Any]]:
    """Why operators did not pass, the commonest cause first, with the operators it kept."""
    found: dict[str, set[str]] = defaultdict(set)
    for told in campaigns:
        for row in told.operators[~told.operators.passed].itertuples():
            if row.exit not in ("NOT_BEGUN", "WAITING"):
                found[str(row.cause)].add(str(row.overload))
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"cause": text, "operators": sorted(overloads)} for text, overloads in ordered]


def differing(campaigns: Sequence[Told]) -> dict[str, list[Any]]:
    """Settings in which the campaigns differ, with the value of each: the axes of an ablation."""
    flat = [dict(flattened(told.settings)) for told in campaigns]
    names = list(dict.fromkeys(name for settings in flat for name in settings))
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {name: found for name, found in values.items() if any(v != found[0] for v in found)}


def report(campaigns: Sequence[Told]) -> dict[str, Any]:
    """What `enable campaign report --json` prints."""
    return {
        "campaigns": [_one(told) for told in campaigns],
        "differing": differing(campaigns),
        "union": union(campaigns),
        "causes": clusters(campaigns),
    }


def _one(told: Told) -> dict[str, Any]:
    rows = told.operators
    ended = rows[rows.passed]
    within = cumulative(told)
    categories = rows.groupby("category").passed.agg(["size", "sum"])
    return {
        "campaign": told.name,
        "model": " ".join(
            str(told.settings["model"][key]) for key in ("provider", "name") if told.settings["model"][key]
        ),
        "total": told.total,
        "passed": int(rows.passed.sum()),
        "percent": round(100 * float(rows.passed.mean()), 1) if len(rows) else 0.0,
        "exits": dict(Counter(rows.exit)),
        "calls": int(rows.calls.sum()),
        "calls_of_passed": float(ended.calls.median()) if len(ended) else None,
        "tokens": int(rows.tokens.sum()),
        "tokens_per_operator": float(rows.tokens.median()) if len(rows) else 0.0,
        "seconds": {"model": round(float(rows.model_s.sum()), 1), "tests": round(float(rows.tests_s.sum()), 1)},
        "categories": {str(c): {"total": int(r["size"]), "passed": int(r["sum"])} for c, r in categories.iterrows()},
        "passed_within_calls": {n: round(float(within[n]), 1) for n in _STEPS if n in within.index},
        "feedback": mended(told),
    }


def draw(campaigns: Sequence[Told], path: Path) -> None:
    """Cumulative coverage against LLM calls as a step curve a campaign; the kind of file is its suffix.

    Raises UserError as `plots.axes_of`.
    """
    with axes_of(path) as axes:
        for told in campaigns:
            within = cumulative(told)
            label = f"{told.name} ({told.total} operators)"
            axes.step([0, *within.index], [0.0, *within], where="post", label=label)
        axes.set_xlabel("LLM calls of an operator")
        axes.set_ylabel("operators that pass (%)")
        axes.set_ylim(0, 100)
        axes.legend(loc="lower right")
