"""A kernel file that a person wrote, into the workspace's library: judged like any other, then accepted or refused."""

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

GROUP = "added"  # of a kernel that replaces none


@dataclass(frozen=True)
class Added:
    """What came of it. cases: on how many it had to pass, by where they come from."""

    JSON = ("kernel", "overloads", "accepted", "cases")
    kernel: str
    overloads: tuple[str, ...]
    cases: dict[str, int]
    result: Accepted | Refused

    @property
    def accepted(self) -> bool:
        return isinstance(self.result, Accepted)

    def as_json(self) -> dict[str, Any]:
        """What `enable library add --json` prints."""
        done = self.result
        answer = {"version": done.version} if isinstance(done, Accepted) else {"version": None, "reasons": done.reasons}
        return {**jsonable(self), **answer}


def add(session: Session, file: Path, few_cases: bool = False) -> Added:
    """Put a kernel file in force if it passes the recorded calls of its overloads in every trace of the workspace, the
    samples of OpInfo and cases made from both, and if nothing regresses.

    few_cases: also where these are fewer than a kernel is accepted on; it is marked so. Raises UserError for what is no
    kernel file, and where there is no case to judge it on.
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


def lines(found: Added, file: Path, session: Session) -> str:
    """Return what happened, and what to type next."""
    history = session.workspace.command("library", "history", found.overloads[0], *library_words(session.base))
    cases = ", ".join(f"{count} {where}" for where, count in found.cases.items() if count)
    if isinstance(found.result, Accepted):
        return (
            f"{found.kernel}: version {found.result.version}, by hand, is in force for {', '.join(found.overloads)}\n"
            f"  cases  {cases}: all passed\n  next   {history}"
        )
    return "\n".join(
        [
            f"{found.kernel}: refused; what was in force still is",
            *(f"  {reason}" for reason in found.result.reasons),
            f"  cases  {cases}",
            f"  next   {session.command('verify', str(file))}",
        ]
    )
