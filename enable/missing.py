"""What a model lacks: the overloads that no kernel serves as it should, ranked by what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from enable.cost import BANDWIDTH, LAUNCH, RATE, Cost, Use, uses
from enable.coverage import Coverage, Row
from enable.session import Session
from enable.tables import size, table
from verify.outcome import Outcome

_MODULES = 3  # that a row of the table names


@dataclass(frozen=True)
class Lack:
    """An overload that is missing, and how the model uses it."""

    row: Row
    use: Use


@dataclass(frozen=True)
class Missing:
    """rows: of what is missing, in order. whole: the cost of all that needs a kernel."""

    coverage: Coverage
    rows: tuple[Lack, ...]
    whole: Cost

    def as_json(self) -> dict[str, Any]:
        """What `enable coverage --missing --json` prints."""
        found = self.coverage
        return {
            "model": found.model,
            "trace": found.trace,
            "platform": found.platform,
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
        """Percent of the time of all that needs a kernel."""
        return round(100 * lack.use.cost.seconds / self.whole.seconds, 1) if self.whole.seconds else 0.0


def what_is_missing(session: Session, name: str, of: Sequence[str], by: str) -> Missing:
    """Judge the trace `name` and rank what no kernel serves. of: as of coverage. by: time, calls, bytes or modules.

    Raises UserError if there is no such trace.
    """
    operators = None if of else session.opinfo_coverage(name, exhaustive=False)
    coverage = session.coverage(name, of) if operators is None else operators.by_overload
    failing = coverage.failing()
    if operators is not None:  # an operator is left at its first failing case, and the others are not judged
        failing = [row for row in failing if row.outcome is not Outcome.SKIPPED]
    used = uses(session.workspace.open_trace(name))
    whole = sum((used[row.overload].cost for row in coverage.compute), Cost())
    rows = [Lack(row, used[row.overload]) for row in failing]
    rows.sort(key=lambda lack: (-_worth(lack, by), -lack.use.cost.nbytes, lack.row.overload))
    return Missing(coverage, tuple(rows), whole)


def _worth(lack: Lack, by: str) -> float:
    if by == "time":
        return lack.use.cost.seconds
    return {"calls": lack.row.calls, "bytes": lack.use.cost.nbytes, "modules": len(lack.use.modules)}[by]


def missing_tables(found: Missing, session: Session, name: str) -> str:
    """The list, what it adds up to, how time is estimated, and what to type next. name: of the trace."""
    if not found.rows:
        return f"nothing is missing: every overload of {found.coverage.model} that needs a kernel is covered"
    rows = [
        {
            "overload": lack.row.overload,
            "state": lack.row.state,
            "calls": lack.row.calls,
            "bytes": size(lack.use.cost.nbytes),
            "time %": found.share(lack),
            "modules": _modules(list(lack.use.modules)),
        }
        for lack in found.rows
    ]
    calls, seconds = (sum(of) for of in zip(*((k.row.calls, k.use.cost.seconds) for k in found.rows), strict=True))
    share = 100 * seconds / found.whole.seconds if found.whole.seconds else 0.0
    coverage, first = found.coverage, found.rows[0].row.overload
    return "\n".join(
        [
            table(rows),
            "",
            f"{coverage.model} on {coverage.platform}: {len(rows)} of {len(coverage.compute)} overloads are missing,"
            f" {calls} of {sum(r.calls for r in coverage.compute)} calls, {share:.1f} % of the estimated time",
            f"  time     of a chip that moves {BANDWIDTH / 1e12:g} TB/s, does {RATE / 1e12:g} TFLOP/s and launches in"
            f" {LAUNCH * 1e6:g} us: the longest of the three for each call",
            f"  next     {session.refining(name, '--op', first, overloads=[first])}",
        ]
    )


def _modules(names: list[str]) -> str:
    """How many modules call it, in the calls that are stored, and the first of them."""
    shown = ", ".join(name or "the model" for name in names[:_MODULES])
    return f"{len(names)}: {shown}{', ...' if len(names) > _MODULES else ''}" if names else "-"
