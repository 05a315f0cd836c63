"""Published or measured results of other systems, which `enable compare` prints beside this library's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enable.cover.session import Session
from traces import UserError

TRITORX = "TritorX, published"  # "Agentic Operator Generation for ML ASICs", Meta: tables for OpInfo and models
FLAGGEMS = "FlagGems, on an H200"  # measured with this project's OpInfo trace and judge's tolerances

# By model: the share of its operators that pass, and the share after refinement among those that OpInfo also tests.
_OPERATORS = {"opinfo": "84.7 % (481 of 568)", "nanogpt": "87.2 %", "dlrm": "81.4 %"}
_REFINED = {"nanogpt": "100 %", "dlrm": "90 %"}
_FLAGGEMS = {"opinfo": "53 %", "nanogpt": "does not train", "dlrm": "-"}
# OpInfo by category, in percent: the best language model in each row of TritorX's table.
CATEGORIES = {
    "Elementwise": 85.9, "Deep Learning": 76.2, "Linear Algebra": 79.5, "Other": 76.9, "Shape Manipulation": 96.0,
    "Reduction": 76.2, "Indexing & Selection": 91.2,
}  # fmt: skip


def rows(session: Session) -> list[dict[str, str]]:
    """Return rows for each trace of a compared model; cases without a verdict are judged first.

    Raises:
        UserError: The workspace has no such trace.
    """
    table_rows = [row for name in session.workspace.trace_names() for row in _of_trace(session, name)]
    if not table_rows:
        raise UserError(
            "no trace here is of a model that others have published on (nanogpt, dlrm, opinfo); "
            f"record one: {session.workspace.command('capture', 'nanogpt')}"
        )
    return table_rows


def _of_trace(session: Session, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows for one trace."""
    operators = session.opinfo_coverage(name, False)
    if operators is not None:
        summary = operators.as_json()
        counts = summary["operators"]
        yield _row(f"OpInfo operators ({name})", counts["covered"], counts["total"], "opinfo")
        for phase in ("forward", "backward"):
            yield _unmatched(f"  {phase}, of those that have it", counts[phase])
        for category, counts in summary["categories"].items():
            best = CATEGORIES.get(category)
            yield {**_unmatched(f"  {category}", counts), TRITORX: "-" if best is None else f"{best} %"}
        return
    trace = session.workspace.open_trace(name)
    info = trace.manifest.get("info")
    model = info.get("model") if isinstance(info, dict) else None
    if model not in _REFINED:
        return
    summary = session.coverage(name).as_json()
    overloads, tested = summary["overloads"], summary["opinfo_subset"]
    yield _row(f"{model}, operators ({name})", overloads["covered"], overloads["compute"], model)
    label = f"{model}, of those that OpInfo tests too, refined ({name})"
    row = _row(label, tested["passed_after_refinement"], tested["matched"], model)
    yield {**row, TRITORX: _REFINED[model], FLAGGEMS: "-"}


def _row(subject: str, covered: int, total: int, model: Any) -> dict[str, str]:
    """Return a row with the other systems' results."""
    row = _unmatched(subject, {"covered": covered, "total": total})
    return {**row, TRITORX: _OPERATORS[model], FLAGGEMS: _FLAGGEMS[model]}


def _unmatched(subject: str, counts: dict[str, Any]) -> dict[str, str]:
    """Return a row for which no other system has results."""
    covered, total = counts["covered"], counts["total"]
    share = f"{100 * covered / max(total, 1):.1f} % ({covered} of {total})"
    return {"what": subject, "this library": share, TRITORX: "-", FLAGGEMS: "-"}
