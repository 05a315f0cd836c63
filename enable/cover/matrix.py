"""What several models need side by side: an overload by model, and what they lack together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from enable.cover.cost import Cost, Use, uses
from enable.cover.coverage import Coverage, Row, is_known, percent
from enable.cover.session import Session
from enable.tables import share, table
from traces import UserError


@dataclass(frozen=True)
class Need:
    """An overload that some of the models need a kernel for. rows, uses: by model, of those that call it."""

    overload: str
    rows: dict[str, Row]
    uses: dict[str, Use]

    @property
    def lacking(self) -> list[str]:
        """The models that no kernel serves as it should."""
        return [name for name, row in self.rows.items() if not row.covered and not row.of_cpus]

    @property
    def covered(self) -> bool:
        """By every model that calls it, also where it is for CPUs alone, which nobody lacks."""
        return all(row.covered for row in self.rows.values())

    @property
    def calls(self) -> int:
        """In the recorded steps of all models together."""
        return sum(row.calls for row in self.rows.values())

    @property
    def cost(self) -> Cost:
        return sum((use.cost for use in self.uses.values()), Cost())

    def worth(self, by: str) -> tuple[float, ...]:
        """What orders needs, the most worth first: what is lacking before what is not."""
        cost, models = self.cost, len(self.lacking) or len(self.rows)
        order = {"models": models, "time": cost.seconds, "calls": self.calls, "bytes": cost.nbytes}
        return (bool(self.lacking), order[by], *order.values())


@dataclass(frozen=True)
class Matrix:
    """coverages: by the name that was typed. needs: of all models, in order."""

    coverages: dict[str, Coverage]
    needs: tuple[Need, ...]

    @property
    def missing(self) -> list[Need]:
        return [need for need in self.needs if need.lacking]

    @property
    def overloads(self) -> dict[str, Any]:
        """How many need a kernel, and how many of these are covered."""
        whole, covered = len(self.needs), sum(need.covered for need in self.needs)
        return {"compute": whole, "covered": covered, "percent": percent(whole, covered)}

    @cached_property
    def seconds(self) -> float:
        """The estimated time of all that needs a kernel."""
        return sum(need.cost.seconds for need in self.needs)

    def share(self, need: Need) -> float:
        """Percent of that time."""
        return round(100 * need.cost.seconds / self.seconds, 1) if self.seconds else 0.0

    def as_json(self, missing: bool) -> dict[str, Any]:
        """What `enable coverage A B --json` prints. missing: only what some model lacks."""
        models = [(name, coverage.as_json()) for name, coverage in self.coverages.items()]
        return {
            "platform": next(iter(self.coverages.values())).platform,
            "models": [
                {"name": name, **{key: found[key] for key in ("model", "trace", "overloads", "calls", "of_cpus")}}
                for name, found in models
            ],
            "overloads": self.overloads,
            "rows": [self._row(need) for need in (self.missing if missing else self.needs)],
        }

    def _row(self, need: Need) -> dict[str, Any]:
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
    """Judge each of these traces. by: models, time, calls or bytes.

    Raises UserError if there is no such trace, it is damaged, or one is named twice.
    """
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise UserError(f"{twice} is named twice; name each trace once: {' '.join(dict.fromkeys(names))}")
    coverages = {name: session.coverage(name) for name in names}
    used = {name: uses(session.workspace.open_trace(name)) for name in names}
    rows: dict[str, dict[str, Row]] = {}
    for name, coverage in coverages.items():
        for row in coverage.compute:
            rows.setdefault(row.overload, {})[name] = row
    needs = [Need(o, found, {name: used[name][o] for name in found}) for o, found in rows.items()]
    needs.sort(key=lambda need: need.overload)
    return Matrix(coverages, tuple(sorted(needs, key=lambda need: need.worth(by), reverse=True)))


def matrix_tables(found: Matrix, session: Session, missing: bool) -> str:
    """The table, a line a model, and what to type next. missing: only rows of what some model lacks."""
    rows = [
        {
            "overload": need.overload,
            "lacking": len(need.lacking),
            "calls": need.calls,
            "time %": found.share(need),
            **{name: _cell(need.rows.get(name)) for name in found.coverages},
        }
        for need in (found.missing if missing else found.needs)
    ]
    lines = [table(rows), ""] if rows else []
    for name, coverage in found.coverages.items():
        told = coverage.as_json()
        overloads, calls = told["overloads"], told["calls"]
        lines.append(
            f"{name}: {overloads['covered']} of {overloads['compute']} overloads{share(overloads)},"
            f" {calls['covered']} of {calls['total']} calls{share(calls)}"
        )
    whole = found.overloads
    platform = next(iter(found.coverages.values())).platform
    lines.append(f"together on {platform}: {whole['covered']} of {whole['compute']} overloads{share(whole)}")
    first = next((need for need in found.missing if is_known(need.overload)), None)
    if first is not None:
        again = next((first.rows[name].again for name in first.lacking if first.rows[name].again), "")
        lines += [f"  to see what fails  {again}"] if again else []
        next_ = session.refining(first.lacking[0], "--op", first.overload, overloads=[first.overload])
        lines.append(f"  next               {next_}")
    return "\n".join(lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    return f"{row.verdict}, CPUs alone" if row.of_cpus else row.verdict
