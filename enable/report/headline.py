"""Write the headlines of a report: one sentence per model and platform, and its trend since an earlier report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from enable.cover.coverage import ALMOST_ALL, percent
from enable.naming import counted
from verify.outcome import Outcome

_LEAST = 0.1  # percent: smaller shares are not written as a number


@dataclass(frozen=True)
class _Result:
    """The operators of one model on one platform, of either report.

    Attributes:
        total: Number of operators that need a kernel.
        covered: Number of operators with a correct kernel.
        passing: Names of the covered operators, or None if the report does not list all of them.
        failing: Names of the other operators.
    """

    total: int
    covered: int
    passing: frozenset[str] | None
    failing: frozenset[str]


def headlines(data: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the headline of each model and platform.

    An operator is an ATen overload. For a trace of OpInfo, it is an OpInfo operator, as in `enable coverage opinfo`.

    Args:
        data: The report's data.
        earlier: Data of the earlier report, or None.
    """
    return [_headline(data, model, earlier) for model in data["models"]]


def _headline(data: Mapping[str, Any], model: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the sentence on one model with the numbers in it, and the trend."""
    opinfo, result = _opinfo(data, model), _result(data, model)
    missing = result.total - result.covered
    unit = "OpInfo operator" if opinfo else "operator"
    if not result.total:
        sentence = "no operator needs a kernel"
    elif not missing:
        sentence = f"all {counted(result.total, unit)}{'' if opinfo else ', 100 % of time'}; nothing is missing"
        sentence = sentence.replace("all 1 ", "its only ")
    else:
        time = "" if opinfo or model["time_percent"] is None else f", {_whole_percent(model['time_percent'])} of time"
        leader = _leading_opinfo(opinfo) if opinfo else _leading(model["missing_percent"])
        sentence = f"{result.covered} of {counted(result.total, unit)}{time}; {missing} missing{leader}"
    return {
        "model": model["title"],
        "platform": model["platform"],
        "text": f"{model['title']} on {model['platform']}: {sentence}",
        "trend": _trend(data, model, earlier) if earlier else "",
        "total": result.total,
        "covered": result.covered,
        "percent": percent(result.total, result.covered),
        "missing": missing,
    }


def _opinfo(data: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the OpInfo results of a model's trace, or None if it is no OpInfo trace."""
    pairs = (one for one in data["opinfo"] if (one["trace"], one["platform"]) == (model["name"], model["platform"]))
    return next(pairs, None)


def _result(data: Mapping[str, Any], model: Mapping[str, Any]) -> _Result:
    """Return a model's counts, and the names behind them."""
    opinfo = _opinfo(data, model)
    if opinfo:
        counts, failing = opinfo["operators"], frozenset(row["operator"] for row in opinfo["rows"])
        return _Result(counts["total"], counts["covered"], None, failing)
    states = {
        row["overload"]: row["models"][model["name"]]
        for row in data["overloads"]
        if row["platform"] == model["platform"] and model["name"] in row["models"]
    }
    passing = frozenset(overload for overload, state in states.items() if state == Outcome.PASS)
    return _Result(len(states), len(passing), passing, frozenset(states) - passing)


def _whole_percent(percent: float) -> str:
    """Return the share of a model with missing operators; such a share is never 0 % or 100 % by rounding alone."""
    if round(percent) >= 100:
        return "over 99 %"
    return "under 1 %" if percent > 0 and not round(percent) else f"{round(percent)} %"


def _leading(shares: Mapping[str, float]) -> str:
    """Return the missing operator with the most time; if two overloads share its name, it is named in full."""
    overload, percent = next(iter(shares.items()))
    operator = overload.partition(".")[0]
    is_unique = sum(other.partition(".")[0] == operator for other in shares) == 1
    share = f"{min(percent, ALMOST_ALL)} %" if percent >= _LEAST else f"under {_LEAST} %"
    return f", led by {(operator if is_unique else overload).removeprefix('aten::')} ({share})"


def _leading_opinfo(opinfo: Mapping[str, Any]) -> str:
    """Return the missing operator with the most samples."""
    row = max(opinfo["rows"], key=lambda row: row["samples"], default=None)
    return f", led by {row['operator']} ({counted(row['samples'], 'sample')})" if row else ""


def _trend(data: Mapping[str, Any], model: Mapping[str, Any], earlier: Mapping[str, Any]) -> str:
    """Return how many operators a model gained and lost since the earlier report."""
    since, key = f"since {earlier['made'][:10]}", (model["name"], model["platform"])
    before_model = next((m for m in earlier["models"] if (m["name"], m["platform"]) == key), None)
    if before_model is None:
        return f"new {since}"
    before, now = _result(earlier, before_model), _result(data, model)
    gained, lost = _difference(before, now)
    changes = [f"{sign}{number}" for sign, number in (("+", gained), ("-", lost)) if number]
    unit = "operator" if changes and changes[-1][1:] == "1" else "operators"
    return f"{' and '.join(changes)} {unit} {since}" if changes else f"no change {since}"


def _difference(before: _Result, now: _Result) -> tuple[int, int]:
    """Return the number of operators that pass now but did not before, and the reverse."""
    if before.passing is not None and now.passing is not None:
        return len(now.passing - before.passing), len(before.passing - now.passing)
    if before.total == now.total:  # the same operators: those that stopped failing pass now
        return len(before.failing - now.failing), len(now.failing - before.failing)
    return max(now.covered - before.covered, 0), max(before.covered - now.covered, 0)


def texts_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the headlines as text, each with its trend in parentheses."""
    return [f"{line['text']} ({line['trend']})" if line["trend"] else line["text"] for line in lines]
