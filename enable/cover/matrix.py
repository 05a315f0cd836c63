"""Compare the needs of several models: overloads by model, and the overloads that they lack together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from enable.cover.cost import Cost, Use, uses
from enable.cover.coverage import Coverage, Row, percent
from enable.cover.needs import is_known
from enable.cover.session import Session
from enable.tables import share, table
from enable.terminal import summary_line
from traces import UserError


@dataclass(frozen=True)
class Need:
    """An overload for which some models need a kernel; `rows` and `uses` are keyed by the models that call it."""

    overload: str
    rows: dict[str, Row]
    uses: dict[str, Use]

    @property
    def lacking(self) -> list[str]:
        """Return the models whose calls are not covered and run on accelerators."""
        return [name for name, row in self.rows.items() if not row.covered and not row.of_cpus]

    @property
    def covered(self) -> bool:
        """Return True if the overload is covered in every model that calls it.

        This includes CPU-only overloads, which `lacking` ignores.
        """
        return all(row.covered for row in self.rows.values())

    @property
    def calls(self) -> int:
        """Return the number of calls in the recorded steps of all models."""
        return sum(row.calls for row in self.rows.values())

    @property
    def cost(self) -> Cost:
        """Return the cost over all models."""
        return sum((use.cost for use in self.uses.values()), Cost())

    def worth(self, by: str) -> tuple[float, ...]:
        """Return the sort key, larger for more valuable needs: missing overloads come before covered ones."""
        cost, models = self.cost, len(self.lacking) or len(self.rows)
        order = {"models": models, "time": cost.seconds, "calls": self.calls, "bytes": cost.nbytes}
        return (bool(self.lacking), order[by], *order.values())


@dataclass(frozen=True)
class Matrix:
    """The coverages by the name that was typed, and the needs of all models in order."""

    coverages: dict[str, Coverage]
    needs: tuple[Need, ...]

    @property
    def missing(self) -> list[Need]:
        """Return the needs that some model lacks."""
        return [need for need in self.needs if need.lacking]

    @property
    def overloads(self) -> dict[str, Any]:
        """Return the number of overloads that need a kernel and the number covered."""
        total, covered = len(self.needs), sum(need.covered for need in self.needs)
        return {"compute": total, "covered": covered, "percent": percent(total, covered)}

    @cached_property
    def seconds(self) -> float:
        """Return the estimated time of all overloads that need a kernel."""
        return sum(need.cost.seconds for need in self.needs)

    def share(self, need: Need) -> float:
        """Return the need's percentage of that time."""
        return round(100 * need.cost.seconds / self.seconds, 1) if self.seconds else 0.0

    def as_json(self, missing: bool) -> dict[str, Any]:
        """Return the object that `enable coverage A B --json` prints; `missing` selects needs that some model lacks."""
        models = [(name, coverage.as_json()) for name, coverage in self.coverages.items()]
        return {
            "platform": next(iter(self.coverages.values())).platform,
            "models": [
                {"name": name, **{key: summary[key] for key in ("model", "trace", "overloads", "calls", "of_cpus")}}
                for name, summary in models
            ],
            "overloads": self.overloads,
            "rows": [self._row(need) for need in (self.missing if missing else self.needs)],
        }

    def _row(self, need: Need) -> dict[str, Any]:
        """Return a need's JSON object."""
        fields = ("calls", "cases", "kernel", "outcome", "state", "detail", "failing", "again")
        return {
            "overload": need.overload,
            "lacking": need.lacking,
            "calls": need.calls,
            "bytes": round(need.cost.nbytes),
            "seconds": need.cost.seconds,
            "percent": self.share(need),
            "models": {name: {key: getattr(row, key) for key in fields} for name, row in need.rows.items()},
        }


def matrix(session: Session, names: Sequence[str], by: str = "models") -> Matrix:
    """Judge several traces and compare them.

    Args:
        session: The session.
        names: Trace names.
        by: Sort order: models, time, calls or bytes.

    Raises:
        UserError: A trace does not exist, is damaged, or is named twice.
    """
    duplicate = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if duplicate is not None:
        raise UserError(f"{duplicate} is named twice; name each trace once: {' '.join(dict.fromkeys(names))}")
    coverages = {name: session.coverage(name) for name in names}
    uses_by_model = {name: uses(session.workspace.open_trace(name)) for name in names}
    rows: dict[str, dict[str, Row]] = {}
    for name, coverage in coverages.items():
        for row in coverage.compute:
            rows.setdefault(row.overload, {})[name] = row
    needs = [
        Need(o, rows_by_model, {name: uses_by_model[name][o] for name in rows_by_model})
        for o, rows_by_model in rows.items()
    ]
    needs.sort(key=lambda need: need.overload)
    return Matrix(coverages, tuple(sorted(needs, key=lambda need: need.worth(by), reverse=True)))


def matrix_tables(comparison: Matrix, session: Session, missing: bool) -> str:
    """Return the table, a line per model, and the next command; `missing` selects the needs that some model lacks."""
    rows = [
        {
            "overload": need.overload,
            "lacking": len(need.lacking),
            "calls": need.calls,
            "time %": comparison.share(need),
            **{name: _cell(need.rows.get(name)) for name in comparison.coverages},
        }
        for need in (comparison.missing if missing else comparison.needs)
    ]
    lines = [table(rows, ("time %", "calls")), ""] if rows else []
    for name, coverage in comparison.coverages.items():
        summary = coverage.as_json()
        overloads, calls = summary["overloads"], summary["calls"]
        lines.append(
            summary_line(
                f"{name}: {overloads['covered']} of {overloads['compute']} overloads{share(overloads)},"
                f" {calls['covered']} of {calls['total']} calls{share(calls)}"
            )
        )
    totals = comparison.overloads
    platform = next(iter(comparison.coverages.values())).platform
    lines.append(f"together on {platform}: {totals['covered']} of {totals['compute']} overloads{share(totals)}")
    first = next((need for need in comparison.missing if is_known(need.overload)), None)
    if first is not None:
        failure_command = next((first.rows[name].again for name in first.lacking if first.rows[name].again), "")
        lines += [summary_line(f"  to see what fails  {failure_command}")] if failure_command else []
        next_ = session.refining(first.lacking[0], "--op", first.overload, overloads=[first.overload])
        lines.append(summary_line(f"  next               {next_}"))
    return "\n".join(lines)


def _cell(row: Row | None) -> str:
    """Return a model's cell for an overload."""
    if row is None:
        return "-"
    return f"{row.verdict}, CPUs alone" if row.of_cpus else row.verdict
