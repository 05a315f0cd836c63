"""How much of a model compiles for a platform, which need not be here: every recorded call compiled, and none run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from enable.cover.coverage import Coverage, Row, judge_cases, match_overloads, percent, read_calls, rows_of
from enable.cover.session import Session, judging, model_of
from enable.tables import kernel_cell, table
from traces import UserError, jsonable
from verify.judging.job import RUN
from verify.judging.standings import Standings
from verify.outcome import Outcome

COMPILES = "compiles"  # the state of an overload of which every recorded call compiles


@dataclass(frozen=True)
class Compiled:
    """What compiles of one trace. found: as of coverage, where PASS says that a case compiles for every target."""

    found: Coverage
    targets: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """What `enable coverage --compile-only --json` prints."""
        compute = self.found.compute
        good = [row for row in compute if row.outcome is Outcome.PASS]
        calls, good_calls = (sum(row.calls for row in rows) for rows in (compute, good))
        return {
            **jsonable(self.found),
            "targets": list(self.targets),
            "overloads": {"compute": len(compute), COMPILES: len(good), "percent": percent(len(compute), len(good))},
            "calls": {"total": calls, COMPILES: good_calls, "percent": percent(calls, good_calls)},
            "rows": [_row(row) for row in compute],
        }


def _row(row: Row) -> dict[str, Any]:
    told = {name: value for name, value in asdict(row).items() if name not in ("outcome", "refined")}
    return {**told, "state": COMPILES if row.outcome is Outcome.PASS else row.state}


def compile_coverage(session: Session, name: str) -> Compiled:
    """Compile every stored call of the trace `name` for the session's platform.

    Raises UserError if there is no such trace, or nothing to compile for.
    """
    platform = session.platform
    if not platform.targets:
        raise UserError(f"platform {platform.name} names no target to compile for; choose another with --platform")
    trace = session.workspace.open_trace(name)
    model = model_of(trace)
    with judging(f"compile {model}") as start:
        stored, matches = read_calls(trace), match_overloads(trace, session.library)
        verdicts = judge_cases(stored.cases, matches, session.judge, start, off=frozenset({RUN}))
    rows = rows_of(trace, stored, matches, verdicts, Standings())  # what is known of runs says nothing here
    found = Coverage(model, str(trace.path), platform.name, rows, frozenset())
    return Compiled(found, tuple(f"{t.backend}:{t.arch}" for t in platform.targets))


def compile_tables(compiled: Compiled) -> str:
    """The table of what needs a kernel, and how much of it compiles."""
    told = compiled.as_json()
    rows = [
        {
            "overload": row.overload,
            "calls": row.calls,
            "cases": row.cases,
            "state": _row(row)["state"],
            "kernel": kernel_cell(row),
            "detail": "" if row.kernel is None else row.detail,
        }
        for row in compiled.found.compute
    ]
    overloads, calls = told["overloads"], told["calls"]
    lines = [
        f"{compiled.found.title} for {', '.join(compiled.targets)}: compiled, not run",
        f"  overloads that compile  {overloads[COMPILES]} of {overloads['compute']} that need a kernel"
        f" ({overloads['percent']} %)",
        f"  their calls             {calls[COMPILES]} of {calls['total']} ({calls['percent']} %)",
    ]
    return "\n".join([table(rows), "", *lines] if rows else lines)
