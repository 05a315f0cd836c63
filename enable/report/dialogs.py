"""Prepare campaigns and their dialogs for the page; each answer also appears as a diff from the one before."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from enable.campaigns.report import cumulative, read, report
from enable.campaigns.work import directory_of
from enable.refine.dialogs import DialogRun, calls, runs
from enable.workspace import Workspace

MOST_TEXT = 20_000  # characters per message on the page
MOST_DIALOGS = 400  # dialogs on the page over all campaigns; operators that did not pass come first


def campaigns(workspace: Workspace, names: Sequence[str]) -> dict[str, Any]:
    """Return the campaigns and their dialogs. Raise UserError if a campaign is missing or damaged."""
    if not names:
        return {"campaigns": [], "dialogs": []}
    results = [read(directory_of(workspace, name)) for name in names]
    data = report(results)
    for row, result in zip(data["campaigns"], results, strict=True):
        row["within"] = [round(float(v), 2) for v in cumulative(result)]
        row["operators"] = result.operators.astype({"passed": bool}).to_dict("records")
        row["outcomes"] = {str(k): int(n) for k, n in result.answers.outcome.value_counts().items()}
    dialogs = [(name, run) for name in names for run in runs(workspace, campaign=name)]
    dialogs.sort(key=lambda pair: pair[1].as_json()["stage"] == "PASSED")
    return {**data, "dialogs": [dialog_data(name, run) for name, run in dialogs[:MOST_DIALOGS]]}


def dialog_data(campaign: str, run: DialogRun) -> dict[str, Any]:
    """Return one dialog with its messages and answers.

    A user's message has the role "prompt" before the first answer of a dialog, and "feedback" after it.
    """
    row, before, role = run.as_json(), "", "prompt"
    turns: list[dict[str, Any]] = []
    for call in calls(run) if not run.problem else ():
        for message in call.messages[call.seen :]:
            role = "prompt" if message.role == "system" else role  # a new dialog begins
            turns.append(
                {"role": role if message.role == "user" else message.role, "text": message.content[:MOST_TEXT]}
            )
        if call.answer is not None:
            turns.append(
                {
                    "role": f"answer {call.number}",
                    "text": call.answer[:MOST_TEXT],
                    "diff": difference(before, call.answer)[:MOST_TEXT] if before else "",
                    "then": list(call.then),
                }
            )
            before, role = call.answer, "feedback"
    return {
        "campaign": campaign,
        "overload": run.overload,
        **{key: row[key] for key in ("stage", "calls", "tokens", "detail")},
        "turns": turns,
    }


def difference(before: str, after: str) -> str:
    """Return a unified diff of two texts without its header lines; empty if they are equal."""
    return "\n".join(list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:])
