"""Compile every recorded call for a platform, without running it; the platform's device need not be present."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from enable.cover.coverage import Coverage, Row, judge_cases, percent, read_calls, rows_of
from enable.cover.needs import match_overloads
from enable.cover.session import Session, judging, model_of
from enable.tables import kernel_cell, table
from enable.terminal import summary_line
from traces import UserError, jsonable
from verify.judging.job import RUN
from verify.judging.standings import Standings
from verify.outcome import Outcome

COMPILES = "compiles"  # the state of an overload if all its recorded calls compile


@dataclass(frozen=True)
class Compiled:
    """The share of one trace that compiles.

    Attributes:
        coverage: Coverage in which PASS means that a case compiles for every target.
        targets: The targets as "backend:arch".
    """

    coverage: Coverage
    targets: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable coverage --compile-only --json` prints."""
        compute = self.coverage.compute
        good = [row for row in compute if row.outcome is Outcome.PASS]
        calls, good_calls = (sum(row.calls for row in rows) for rows in (compute, good))
        return {
            **jsonable(self.coverage),
            "targets": list(self.targets),
            "overloads": {"compute": len(compute), COMPILES: len(good), "percent": percent(len(compute), len(good))},
            "calls": {"total": calls, COMPILES: good_calls, "percent": percent(calls, good_calls)},
            "rows": [_row(row) for row in compute],
        }


def _row(row: Row) -> dict[str, Any]:
    """Return a row with the state "compiles" in place of PASS."""
    fields = {name: value for name, value in asdict(row).items() if name not in ("outcome", "refined")}
    return {**fields, "state": COMPILES if row.outcome is Outcome.PASS else row.state}


def compile_coverage(session: Session, name: str) -> Compiled:
    """Compile every stored call in the trace `name` for the session's platform.

    Raises:
        UserError: The trace does not exist, or the platform names no target.
    """
    platform = session.platform
    if not platform.targets:
        raise UserError(f"platform {platform.name} names no target to compile for; choose another with --platform")
    trace = session.workspace.open_trace(name)
    model = model_of(trace)
    with judging(f"compile {model}") as start:
        stored, matches = read_calls(trace), match_overloads(trace, session.library)
        verdicts = judge_cases(stored.cases, matches, session.judge, start, off=frozenset({RUN}))
    rows = rows_of(trace, stored, matches, verdicts, Standings())  # verdicts from runs do not apply here
    coverage = Coverage(model, str(trace.path), platform.name, rows, frozenset())
    return Compiled(coverage, tuple(f"{t.backend}:{t.arch}" for t in platform.targets))


def compile_tables(compiled: Compiled) -> str:
    """Return the table of overloads that need a kernel, and a summary of how many compile."""
    summary = compiled.as_json()
    rows = [
        {
            "overload": row.overload,
            "calls": row.calls,
            "cases": row.cases,
            "state": _row(row)["state"],
            "kernel": kernel_cell(row),
            "detail": "" if row.kernel is None else row.detail,
        }
        for row in compiled.coverage.compute
    ]
    overloads, calls = summary["overloads"], summary["calls"]
    lines = [
        f"{compiled.coverage.title} for {', '.join(compiled.targets)}: compiled, not run",
        f"  overloads that compile  {overloads[COMPILES]} of {overloads['compute']} that need a kernel"
        f" ({overloads['percent']} %)",
        f"  their calls             {calls[COMPILES]} of {calls['total']} ({calls['percent']} %)",
    ]
    lines = [summary_line(line) for line in lines]
    return "\n".join([table(rows, ("kernel", "cases", "calls")), "", *lines] if rows else lines)
