"""Decide if a kernel may replace a library kernel: it must pass its trial, and nothing may regress.

`try_kernel` judges a proposal once. `accept` puts it in force if the library has not changed since the trial in a way
that matters to the decision. Both depend on verdicts alone, so tests need no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from enable.cover.recorded import Recorded, recorded
from enable.cover.self_consistency import broken_calls
from enable.cover.session import Session
from enable.refine.evidence import HELD_BACK
from enable.refine.proposal import LibraryChange, Proposal, ProposalTrial, Refused
from generate.kernel_library import Library
from generate.versions import Versions
from traces import UserError
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.judging.verdicts import judge_version
from verify.outcome import ACCEPTANCE, FILE, Outcome, Verdict


@dataclass(frozen=True)
class Accepted:
    """A kernel that is now in force.

    Attributes:
        path: The kernel's file in the workspace's library.
        version: Version number in the history for `path`.
        provenance: Facts about the kernel's origin and trial, as stored in the history.
    """

    path: Path
    version: int
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class TriedKernel:
    """A proposal that was judged.

    Attributes:
        proposal: The proposal.
        refused: Reason for the refusal; None if the kernel may come into force.
        change: Library change that was judged; None if the text does not fit into the library.
        verdicts: Verdicts on the shown cases, and on the proposal as a whole if it is refused for another reason.
        facts: Entries that the trial adds to the provenance.
        judged: Count of judged cases.
    """

    proposal: Proposal
    refused: Refused | None
    change: LibraryChange | None = None
    verdicts: tuple[Verdict, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    judged: int = 0

    @property
    def passed(self) -> bool:
        return self.refused is None


def try_kernel(session: Session, proposal: Proposal) -> TriedKernel:
    """Judge a proposal against the library in force.

    A text that is not a kernel file gives RUNTIME_ERROR, and one that does not fit into the library gives CHEAT. All
    exceptions from the judge pass through, such as TraceError.
    """
    before, recorded_cases = session.reload_library(), recorded(session.workspace)
    try:
        change = _fit(proposal, before, recorded_cases)
    except UserError as error:  # the text is not a kernel file, or does not fit into the library
        outcome = Outcome.RUNTIME_ERROR if isinstance(error, KernelFileError) else Outcome.CHEAT
        unfit = Refused((str(error),), feedback=str(error), outcome=outcome)
        return TriedKernel(proposal, unfit, verdicts=(Verdict(FILE, outcome, str(error), str(error)),))
    judging = ProposalTrial(session, proposal, change, recorded_cases)
    refused = judging.refusal()
    verdicts = judging.on_shown
    if refused is not None and all(v.outcome is Outcome.PASS for v in verdicts):
        detail = refused.feedback.split("\n")[0]
        whole = Verdict(ACCEPTANCE, refused.outcome, detail, refused.feedback, rule=refused.rule)
        verdicts = (*verdicts, whole)
    facts = _facts(session, proposal, change, recorded_cases, judging.few())
    return TriedKernel(proposal, refused, change, verdicts, facts, judging.judged)


def accept(session: Session, tried: TriedKernel, provenance: Mapping[str, Any] | None = None) -> Accepted | Refused:
    """Put a kernel that passed its trial in force.

    If another kernel that affects the decision was accepted after the trial, the proposal is judged again. Most
    verdicts then come from the cache. All exceptions from the judge pass through.

    Args:
        session: Session with the library, the judge and the workspace.
        tried: Result of `try_kernel`.
        provenance: Facts that the caller knows about the kernel, such as traces, journal and model.

    Returns:
        Accepted, or the refusal of the last trial.
    """
    versions = Versions(session.workspace.kernels)
    while tried.refused is None:
        assert tried.change is not None
        proposal = tried.proposal
        group, name = proposal.path.parent.name, proposal.path.stem
        with versions.locked():
            if _is_unchanged(session, proposal, tried.change):
                full_provenance = {**(provenance or {}), **tried.facts}
                number = versions.put(group, name, proposal.source, full_provenance)
                session.reload_library()
                return Accepted(versions.path(group, name), number, full_provenance)
        tried = try_kernel(session, proposal)
    return tried.refused


def roll_back(session: Session, group: str, name: str, to: int | None = None) -> int:
    """Put an earlier kernel version in force, and return the number of the version that this creates.

    Args:
        session: Session with the library and the workspace.
        group: The kernel's folder in the library.
        name: The kernel's file name without `.py`.
        to: Version number, by default the previous one; 0 is the base library's kernel.

    Raises:
        UserError: If the number is unknown, or if with that version kernels would call each other in a cycle or would
            call an overload that no kernel serves.
    """
    versions = Versions(session.workspace.kernels)
    with versions.locked():
        before, path = session.reload_library(), versions.path(group, name)
        to = versions.before(group, name) if to is None else to
        source = versions.source(group, name, to)
        after = before.replacing(path, session.library.parse(source, path) if source is not None else None)
        broken = broken_calls(before, after)
        if broken:
            raise UserError(f"version {to} of {group}/{name} cannot be put in force: {broken}; roll those back first")
        number = versions.roll_back(group, name, to)
    session.reload_library()
    return number


def _fit(
    proposal: Proposal, before: Library, recorded_cases: Recorded, kernel: KernelFile | None = None
) -> LibraryChange:
    """Return the change from the library `before` to the same library with the proposal.

    Args:
        proposal: The proposed kernel file.
        before: Library in force.
        recorded_cases: The workspace's recorded cases.
        kernel: The proposal's parsed kernel file, if the caller has it.

    Raises:
        UserError: If the text is not a kernel file or does not fit into the library.
    """
    kernel = kernel or before.parse(proposal.source, proposal.path)
    listed = ", ".join(kernel.overloads)
    if proposal.serves and set(kernel.overloads) != set(proposal.serves):  # a further overload would be untested
        raise KernelFileError(f"OVERLOADS must list exactly {', '.join(proposal.serves)}; it lists {listed}")
    after = before.replacing(proposal.path, kernel)
    broken = broken_calls(before, after)
    if broken:
        raise UserError(broken)
    cases = (*proposal.shown, *proposal.held_back, *recorded_cases.cases)
    return LibraryChange(kernel, before, after, frozenset({*kernel.overloads, *(c.overload for c in cases)}))


def _is_unchanged(session: Session, proposal: Proposal, change: LibraryChange) -> bool:
    """Return True if the same kernel files would serve every affected overload, now as at the trial."""
    before, recorded_cases = session.reload_library(), recorded(session.workspace)
    try:
        return _fit(proposal, before, recorded_cases, change.kernel).basis == change.basis
    except UserError:
        return False


def _facts(
    session: Session, proposal: Proposal, change: LibraryChange, recorded_cases: Recorded, few: Mapping[str, int]
) -> dict[str, Any]:
    """Return the entries that a trial adds to a version's provenance."""
    held_back_counts = Counter(case.overload for case in proposal.held_back)
    served = sorted({c.overload for c in proposal.shown if change.serves(c.overload)})
    replaced = next((k for k in map(change.before.kernel, change.kernel.overloads) if k is not None), None)
    return {
        "judge": judge_version(session.platform),
        "platform": session.platform.name,
        "sandbox": session.judge.sandbox,
        "self_consistent": proposal.self_consistent,
        "calls": list(change.kernel.calls),
        "replaces": replaced.key if replaced is not None else None,
        "cases": {"shown": len(proposal.shown), "held_back": len(proposal.held_back)},
        "traces_asked": list(recorded_cases.traces),
        "traces_unread": dict(recorded_cases.unread),
        "nothing_held_back": {o: f"fewer than {HELD_BACK} cases" for o in served if not held_back_counts[o]},
        "few_cases": dict(few),
    }
