"""Numbers of other systems, as published or measured, beside which `enable compare` puts this library's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enable.cover.session import Session
from traces import UserError

TRITORX = "TritorX, published"  # "Agentic Operator Generation for ML ASICs", Meta: tables of OpInfo and of models
FLAGGEMS = "FlagGems, on an H200"  # measured with this project's OpInfo trace and judge's tolerances

# What is compared, by model: the share of its operators that pass, and of those that OpInfo tests too, refined.
_OPERATORS = {"opinfo": "84.7 % (481 of 568)", "nanogpt": "87.2 %", "dlrm": "81.4 %"}
_REFINED = {"nanogpt": "100 %", "dlrm": "90 %"}
_FLAGGEMS = {"opinfo": "53 %", "nanogpt": "does not train", "dlrm": "-"}
# Of OpInfo by category, in percent: the best language model of each row of TritorX's table.
CATEGORIES = {
    "Elementwise": 85.9, "Deep Learning": 76.2, "Linear Algebra": 79.5, "Other": 76.9, "Shape Manipulation": 96.0,
    "Reduction": 76.2, "Indexing & Selection": 91.2,
}  # fmt: skip


def rows(session: Session) -> list[dict[str, str]]:
    """A row for each trace of the workspace that is of a compared model; what was not judged yet is judged now.

    Raises UserError if there is none.
    """
    found = [row for name in session.workspace.trace_names() for row in _of_trace(session, name)]
    if not found:
        raise UserError(
            "no trace here is of a model that others have published on (nanogpt, dlrm, opinfo); "
            f"record one: {session.workspace.command('capture', 'nanogpt')}"
        )
    return found


def _of_trace(session: Session, name: str) -> Iterator[dict[str, str]]:
    operators = session.opinfo_coverage(name, False)
    if operators is not None:
        found = operators.as_json()
        counts = found["operators"]
        yield _row(f"OpInfo operators ({name})", counts["covered"], counts["total"], "opinfo")
        for phase in ("forward", "backward"):
            yield _unmatched(f"  {phase}, of those that have it", counts[phase])
        for category, counts in found["categories"].items():
            best = CATEGORIES.get(category)
            yield {**_unmatched(f"  {category}", counts), TRITORX: "-" if best is None else f"{best} %"}
        return
    trace = session.workspace.open_trace(name)
    info = trace.manifest.get("info")
    model = info.get("model") if isinstance(info, dict) else None
    if model not in _REFINED:
        return
    found = session.coverage(name).as_json()
    overloads, tested = found["overloads"], found["opinfo_subset"]
    yield _row(f"{model}, operators ({name})", overloads["covered"], overloads["compute"], model)
    what = f"{model}, of those that OpInfo tests too, refined ({name})"
    row = _row(what, tested["passed_after_refinement"], tested["matched"], model)
    yield {**row, TRITORX: _REFINED[model], FLAGGEMS: "-"}


def _row(what: str, covered: int, total: int, model: Any) -> dict[str, str]:
    row = _unmatched(what, {"covered": covered, "total": total})
    return {**row, TRITORX: _OPERATORS[model], FLAGGEMS: _FLAGGEMS[model]}


def _unmatched(what: str, counts: dict[str, Any]) -> dict[str, str]:
    """A row that nobody else has numbers for."""
    covered, total = counts["covered"], counts["total"]
    share = f"{100 * covered / max(total, 1):.1f} % ({covered} of {total})"
    return {"what": what, "this library": share, TRITORX: "-", FLAGGEMS: "-"}
