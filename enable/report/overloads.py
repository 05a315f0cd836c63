"""Collect a platform's results: its models, each overload that they call, missing overloads, and OpInfo by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from enable.cover.cost import Use, uses
from enable.cover.coverage import ALMOST_ALL, Coverage, Row, percent
from enable.cover.matrix import Need
from enable.cover.needs import is_known
from enable.cover.published import CATEGORIES
from enable.cover.session import Session
from enable.report.reasons import NOT_RUN, category, command_in
from verify.judging.dialect import refusal
from verify.judging.standings import Standing
from verify.outcome import Outcome

_OTHERS = "others"  # cases without a floating dtype: integers, bool, or no tensor at all


@dataclass
class OfPlatform:
    """The results of one platform's session.

    Attributes:
        name: Platform name.
        models: Coverage of each trace.
        opinfo: OpInfo coverage of each trace by category.
        rows: Coverage rows by overload and trace.
        uses: Calls and cost by overload and trace.
        not_run: Pairs (OpInfo trace, overload) whose cases were skipped after an operator failed. Their state is
            unknown.
        overloads: Table rows for all overloads.
        missing: Table rows for overloads that some trace lacks.
    """

    name: str
    models: list[dict[str, Any]] = field(default_factory=list)
    opinfo: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    uses: dict[str, dict[str, Use]] = field(default_factory=dict)
    not_run: set[tuple[str, str]] = field(default_factory=set)
    overloads: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)


def of_platform(session: Session, traces: Sequence[str]) -> OfPlatform:
    """Judge everything that has no verdict yet, and return the platform's results.

    Raises:
        UserError: A trace does not exist or is damaged.
    """
    result = OfPlatform(session.platform.name)
    for name in traces:
        coverage = _covered(session, name, result).without_cpus()
        used = uses(session.workspace.open_trace(name))
        compute = coverage.compute
        for row in compute:
            result.rows.setdefault(row.overload, {})[name] = row
            result.uses.setdefault(row.overload, {})[name] = used[row.overload]
        result.models.append(
            {
                "name": name,
                "title": coverage.title,
                "model": coverage.model,
                "platform": result.name,
                **{key: coverage.as_json()[key] for key in ("overloads", "calls")},
                **_time(compute, {row.overload: used[row.overload].cost.seconds for row in compute}),
                "missing": [row.overload for row in compute if not row.covered],
                "command": session.command("coverage", name),
            }
        )
    standings, accuracies = session.judge.standings(), session.judge.accuracies()
    for overload, rows in sorted(result.rows.items()):
        match = session.library.match(overload) if is_known(overload) else None
        standing_key = (match.kernels, overload) if match else ((), overload)
        refused = refusal(match.job, session.platform) if match else None
        standing = standings[standing_key] if refused is None else Standing()
        table_row = _overload(overload, rows, result, standing, accuracies.get(standing_key))
        result.overloads.append({**table_row, "layer": refused.layer} if refused else table_row)
    result.missing = _missing(session, result)
    return result


def _time(compute: Sequence[Row], seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return a model's estimated time, the covered share, and the shares of missing overloads, largest first.

    The covered share is below 100 % if an overload is missing, also if that one takes no time.
    """
    total, missing = sum(seconds.values()), [row.overload for row in compute if not row.covered]
    covered = percent(round(1e12 * total), round(1e12 * (total - sum(seconds[o] for o in missing))))
    shares = {o: round(100 * seconds[o] / total, 1) if total else 0.0 for o in missing}
    return {
        "seconds": total,
        "time_percent": min(covered, ALMOST_ALL) if missing and covered is not None else covered,
        "missing_percent": dict(sorted(shares.items(), key=lambda share: -share[1])),
    }


def _covered(session: Session, name: str, results: OfPlatform) -> Coverage:
    """Return the coverage of a trace with suggested commands; add its OpInfo results to `results`."""
    operators = session.opinfo_coverage(name, exhaustive=False)
    if operators is None:
        return session.coverage(name)
    results.not_run |= {(name, overload) for overload in operators.not_run}
    summary = operators.as_json()
    categories = [
        {"category": category, **counts, "published_percent": CATEGORIES.get(category)}
        for category, counts in summary["categories"].items()
    ]
    failing = [
        {"operator": row["name"], **{key: row[key] for key in ("category", "samples", "state", "detail")}}
        for row in summary["operator_rows"]
        if row["outcome"] != Outcome.PASS
    ]
    results.opinfo.append(
        {
            "trace": name,
            "platform": results.name,
            **{key: summary[key] for key in ("operators", "random")},
            "categories": categories,
            "rows": failing,
        }
    )
    return session.hinted(operators.by_overload, name)


def _overload(
    overload: str, rows: Mapping[str, Row], results: OfPlatform, standing: Standing, error_ratio: float | None
) -> dict[str, Any]:
    """Return an overload's table row: the worst state over all traces, and the kernel's verdicts."""
    judged_rows = {name: row for name, row in rows.items() if (name, overload) not in results.not_run}
    worst = min((judged_rows or rows).values(), key=lambda row: row.covered)
    failed = standing.failed.get(worst.failing) if worst.failing else None
    return {
        "overload": overload,
        "category": category(overload),
        "platform": results.name,
        "state": worst.state if judged_rows else NOT_RUN,
        "evidence": worst.evidence if judged_rows else None,
        "layer": failed.layer if failed else "",
        "detail": worst.detail,
        "kernel": worst.kernel,
        "origin": worst.origin,
        "cases": standing.judged,
        "independent": worst.independent,
        "variants": len(standing.variants),
        "error_ratio": error_ratio,
        "calls": sum(row.calls for row in rows.values()),
        "seconds": sum(use.cost.seconds for use in results.uses[overload].values()),
        "dtypes": dtypes_of(standing),
        "models": {name: row.state if name in judged_rows else NOT_RUN for name, row in rows.items()},
    }


def dtypes_of(standing: Standing) -> dict[str, str]:
    """Return a kernel's outcome for each floating dtype on which it was judged, and for cases without one."""
    passed = {d or _OTHERS for v in standing.passed.values() for d in v.dtypes.split(",")}
    failed = {d or _OTHERS: str(v.outcome) for v in standing.failed.values() for d in v.dtypes.split(",")}
    return {**dict.fromkeys(sorted(passed), str(Outcome.PASS)), **failed}


def _missing(session: Session, results: OfPlatform) -> list[dict[str, Any]]:
    """Return the overloads that some trace lacks; those missing in most traces first, then by estimated time."""
    needs = []
    for overload, of_traces in results.rows.items():
        judged_rows = {name: row for name, row in of_traces.items() if (name, overload) not in results.not_run}
        needs.append(Need(overload, judged_rows, {name: results.uses[overload][name] for name in judged_rows}))
    total_seconds = sum(need.cost.seconds for need in needs)
    rows = []
    for need in sorted(needs, key=lambda need: need.worth("models"), reverse=True):
        if need.lacking:
            first = need.rows[need.lacking[0]]
            refine = session.refining(need.lacking[0], "--op", need.overload, overloads=[need.overload])
            rows.append(
                {
                    "overload": need.overload,
                    "platform": results.name,
                    "models": need.lacking,
                    "calls": need.calls,
                    "seconds": need.cost.seconds,
                    "time_percent": round(100 * need.cost.seconds / total_seconds, 1) if total_seconds else 0.0,
                    "state": first.state,
                    "detail": first.detail,
                    "command": first.again or command_in(first.detail) or refine,
                }
            )
    return rows
