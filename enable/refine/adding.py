"""Add a handwritten kernel file to the workspace's library, if it passes the same trial as any other kernel.

Used by `enable library add`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enable.cover.recorded import recorded
from enable.cover.session import Session
from enable.options import library_words
from enable.refine.acceptance import Accepted, accept, try_kernel
from enable.refine.proposal import Proposal, Refused
from generate.versions import BY_HAND
from traces import UserError, jsonable
from verify.outcome import Outcome

GROUP = "added"  # group for a kernel that does not replace another one


@dataclass(frozen=True)
class Added:
    """The result of `enable library add`.

    Attributes:
        kernel: Group and name, separated by a slash.
        overloads: Overloads that the file lists.
        cases: How many cases the kernel had to pass, by their origin ("recorded" or "made").
        result: The acceptance or the refusal.
    """

    JSON = ("kernel", "overloads", "accepted", "cases")
    kernel: str
    overloads: tuple[str, ...]
    cases: dict[str, int]
    result: Accepted | Refused

    @property
    def accepted(self) -> bool:
        return isinstance(self.result, Accepted)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable library add --json` prints."""
        result = self.result
        answer = (
            {"version": result.version}
            if isinstance(result, Accepted)
            else {"version": None, "reasons": result.reasons}
        )
        return {**jsonable(self), **answer}


def add(session: Session, file: Path, few_cases: bool = False) -> Added:
    """Put a kernel file in force if it passes its trial and nothing regresses.

    The trial runs the recorded calls of its overloads from all traces of the workspace, OpInfo samples, and
    cases derived from both.

    Args:
        session: Session with the library, the judge and the workspace.
        file: Kernel file to add.
        few_cases: Accept the kernel on fewer independent cases than usual; the version is then marked
            accordingly.

    Raises:
        UserError: If the file is not a kernel file, or if there is no case to judge it on.
    """
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error}); name a kernel file") from error
    kernel = session.library.parse(source, file)
    replaced = next((k for k in map(session.library.kernel, kernel.overloads) if k is not None), None)
    group, name = (replaced.path.parent.name, replaced.path.stem) if replaced is not None else (GROUP, file.stem)
    shown = [case for case in recorded(session.workspace).cases if case.overload in kernel.overloads]
    path = session.workspace.kernels / group / f"{name}.py"
    tried = try_kernel(session, Proposal(path, source, shown, few_cases=few_cases))
    if not tried.judged and tried.refused is not None and tried.refused.outcome is Outcome.SKIPPED:
        raise UserError(
            f"{file}: no trace here calls {kernel.overloads[0]}, and OpInfo has no sample of it; record one"
        )
    result = accept(session, tried, {"by": BY_HAND, "file": file.name})
    counts = {"recorded": len(shown), "made": max(0, tried.judged - len(shown))}
    return Added(f"{group}/{name}", kernel.overloads, counts, result)


def lines(added: Added, file: Path, session: Session) -> str:
    """Return the report on an added kernel as text, with the next command to type."""
    history = session.workspace.command("library", "history", added.overloads[0], *library_words(session.base))
    cases = ", ".join(f"{count} {where}" for where, count in added.cases.items() if count)
    if isinstance(added.result, Accepted):
        return (
            f"{added.kernel}: version {added.result.version}, by hand, is in force for {', '.join(added.overloads)}\n"
            f"  cases  {cases}: all passed\n  next   {history}"
        )
    return "\n".join(
        [
            f"{added.kernel}: refused; what was in force still is",
            *(f"  {reason}" for reason in added.result.reasons),
            f"  cases  {cases}",
            f"  next   {session.command('verify', str(file))}",
        ]
    )
