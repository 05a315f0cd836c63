"""Explain each verdict of a report in one line, and group operators by category."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from enable.cover.coverage import NO_KERNEL
from enable.cover.needs import is_known
from enable.naming import counted
from generate.kernel_library import KERNELS, Library
from traces.overloads import resolve
from verify.judging.standings import ENOUGH
from verify.outcome import Outcome

NOT_RUN = "not run"  # a state: the cases were skipped
OTHER = "other"  # the fallback category
_MOST = 300  # characters
_STATES = {
    NO_KERNEL: "the library has no kernel for it",
    NOT_RUN: "its cases were skipped, because an operator that calls it had failed",
}
_COMMAND = "; try it: "  # precedes the command that enable/trust.py suggests


def reason(state: str, detail: str, independent: int | None = None) -> str:
    """Return the reason for a verdict as one line; "" for a plain pass.

    Args:
        state: The state or outcome.
        detail: The judge's detail; a command in it is left out.
        independent: Number of independent cases that a kernel passed, or None if it is unknown.
    """
    if state in _STATES:
        return _STATES[state]
    few_cases = f"passed only {counted(independent, 'independent case')}" if independent is not None else ""
    is_weak = state == Outcome.PASS and independent is not None and independent < ENOUGH
    parts = [few_cases if is_weak else "", detail.partition(_COMMAND)[0]]
    line = " ".join("; ".join(filter(None, parts)).split())
    return line if len(line) <= _MOST else f"{line[: _MOST - 1]}…"


def command_in(detail: str) -> str:
    """Return the command that a detail suggests, or ""."""
    return detail.partition(_COMMAND)[2]


def category(overload: str) -> str:
    """Return an overload's category: the packaged kernel's folder, or else the tag that PyTorch gives it."""
    if not is_known(overload):
        return OTHER
    match = _packaged().match(overload)
    if match is not None:
        return match.kernel.path.parent.name
    tags = resolve(overload).tags
    return next((tag.name for tag in (torch.Tag.pointwise, torch.Tag.reduction) if tag in tags), OTHER)


@cache
def _packaged() -> Library:
    """Return the packaged library, whose folders are the categories."""
    return Library(KERNELS)


def add_reasons(data: dict[str, Any]) -> None:
    """Add a `reason` to every row with a verdict."""
    for row in data["overloads"]:
        row["reason"] = reason(row["state"], row["detail"], row["independent"])
    for row in (*data["missing"], *(row for one in data["opinfo"] for row in one["rows"])):
        row["reason"] = reason(row["state"], row["detail"])
    for row in (*data["failures"], *(node for search in data["searches"] for node in search["nodes"])):
        row["reason"] = reason(row["state"], row["detail"])
    for row in data["dialogs"]:
        row["reason"] = reason(row["stage"], row["detail"])
    if data["changes"]:
        now = {(row["platform"], row["overload"]): row["reason"] for row in data["overloads"]}
        for row in data["changes"]["rows"]:
            row["reason"] = now.get((row["platform"], row["overload"]), "no trace of this report calls it")
