"""Rank the overloads of a model that no kernel covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from enable.cover.cost import BANDWIDTH, LAUNCH, RATE, Cost, Use, uses
from enable.cover.coverage import Coverage, Row
from enable.cover.needs import is_known
from enable.cover.session import Session
from enable.tables import size, table
from enable.terminal import summary_line
from traces import jsonable
from verify.outcome import Outcome

_MODULES = 3  # modules named in a table row


@dataclass(frozen=True)
class Lack:
    """A missing overload, and how the model uses it."""

    row: Row
    use: Use


@dataclass(frozen=True)
class Missing:
    """The missing overloads of a trace.

    Attributes:
        coverage: The trace's coverage.
        rows: Missing overloads in order.
        compute: All overloads for which accelerators need kernels.
        whole: Their total cost.
    """

    coverage: Coverage
    rows: tuple[Lack, ...]
    compute: tuple[Row, ...]
    whole: Cost

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable coverage --missing --json` prints."""
        return {
            **jsonable(self.coverage),
            "seconds": self.whole.seconds,
            "nominal": {"bytes_per_second": BANDWIDTH, "flops_per_second": RATE, "seconds_per_call": LAUNCH},
            "missing": [
                {
                    "overload": lack.row.overload,
                    "state": lack.row.state,
                    "calls": lack.row.calls,
                    "bytes": round(lack.use.cost.nbytes),
                    "flops": round(lack.use.cost.flops),
                    "seconds": lack.use.cost.seconds,
                    "percent": self.share(lack),
                    "modules": list(lack.use.modules),
                    "detail": lack.row.detail,
                }
                for lack in self.rows
            ],
        }

    def share(self, lack: Lack) -> float:
        """Return the overload's percentage of the time of all overloads that need a kernel."""
        return round(100 * lack.use.cost.seconds / self.whole.seconds, 1) if self.whole.seconds else 0.0


def what_is_missing(session: Session, name: str, of: Sequence[str], by: str) -> Missing:
    """Judge the trace `name` and rank the overloads that no kernel covers.

    Args:
        session: The session.
        name: Trace name.
        of: Traces whose overloads alone count, if there are any.
        by: Sort order: time, calls, bytes or modules.

    Raises:
        UserError: The trace does not exist.
    """
    operators = None if of else session.opinfo_coverage(name, exhaustive=False)
    coverage = session.coverage(name, of) if operators is None else operators.by_overload
    failing = coverage.failing()
    if operators is not None:  # an operator stops at its first failing case, so its other cases are not judged
        failing = [row for row in failing if row.outcome is not Outcome.SKIPPED]
    uses_by_overload = uses(session.workspace.open_trace(name))
    compute = tuple(row for row in coverage.compute if not row.of_cpus)
    total_cost = sum((uses_by_overload[row.overload].cost for row in compute), Cost())
    rows = [Lack(row, uses_by_overload[row.overload]) for row in failing if not row.of_cpus]
    rows.sort(key=lambda lack: (-_worth(lack, by), -lack.use.cost.nbytes, lack.row.overload))
    return Missing(coverage, tuple(rows), compute, total_cost)


def _worth(lack: Lack, by: str) -> float:
    """Return the value by which overloads are ranked."""
    if by == "time":
        return lack.use.cost.seconds
    return {"calls": lack.row.calls, "bytes": lack.use.cost.nbytes, "modules": len(lack.use.modules)}[by]


def missing_tables(missing: Missing, session: Session, name: str) -> str:
    """Return the table for the trace `name`, its totals, how time is estimated, and the next command."""
    rows = [
        {
            "overload": lack.row.overload,
            "state": lack.row.state,
            "calls": lack.row.calls,
            "bytes": size(lack.use.cost.nbytes),
            "time %": missing.share(lack),
            "modules": _modules(list(lack.use.modules)),
        }
        for lack in missing.rows
    ]
    coverage, calls = missing.coverage, sum(lack.row.calls for lack in missing.rows)
    seconds = sum(lack.use.cost.seconds for lack in missing.rows)
    share = 100 * seconds / missing.whole.seconds if missing.whole.seconds else 0.0
    lines = [
        f"{coverage.title} on {coverage.platform}: {len(rows)} of {len(missing.compute)} overloads are missing,"
        f" {calls} of {sum(r.calls for r in missing.compute)} calls, {share:.1f} % of the estimated time",
        "  time               is estimated for each call as the longest of three: moving its bytes at"
        f" {BANDWIDTH / 1e12:g} TB/s, its operations at {RATE / 1e12:g} TFLOP/s, a launch of {LAUNCH * 1e6:g} us",
    ]
    if coverage.of_cpus:
        lines.append(
            f"  for CPUs alone     {len(coverage.of_cpus)} overloads are left out; instead: {coverage.instead}"
        )
    first = next((lack.row.overload for lack in missing.rows if is_known(lack.row.overload)), None)
    if first is not None:
        lines.append(f"  next               {session.refining(name, '--op', first, overloads=[first])}")
    return "\n".join([*([table(rows, ("modules", "bytes", "calls")), ""] if rows else []), *map(summary_line, lines)])


def _modules(names: list[str]) -> str:
    """Return the number of calling modules among the stored calls, and the first few names."""
    shown = ", ".join(name or "the model" for name in names[:_MODULES])
    return f"{len(names)}: {shown}{', ...' if len(names) > _MODULES else ''}" if names else "-"
