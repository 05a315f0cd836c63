"""Outcomes and verdicts for one judged case, and the judge's layers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Result for one case.

    It is never reduced to a bool: only PASS counts as coverage, and the other outcomes call for different work.
    """

    PASS = "PASS"
    WRONG = "WRONG"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    CHEAT = "CHEAT"
    SKIPPED = "SKIPPED"


FILE, ACCEPTANCE = "file", "acceptance"  # subjects of a verdict other than a case: the file, and its acceptance
NO_CASE = (FILE, ACCEPTANCE)
# rule of an acceptance verdict: every case passes, but together they do not reach the whole file
UNREACHED = "UNREACHED"
LINT = "LINT"  # rule in an acceptance verdict: every case passes, but the file breaks the dialect's rules


@dataclass(frozen=True)
class Verdict:
    """Outcome for one case, with its evidence.

    Attributes:
        case: Id for the case, or a name from NO_CASE.
        outcome: The outcome.
        detail: One line for a table.
        report: Complete evidence as text that fits into a prompt: compiler log, accuracy report or traceback. It
            contains no path, time or address from the machine that ran the case.
        layer: Layer that failed the case, from LAYERS; empty for PASS and SKIPPED.
        rule: The layer's rule.
        sandbox: How the child was confined.
        dtypes: Floating dtypes among the arguments, sorted and separated by commas, and sparse_coo if one is
            sparse.
        signature: The case's signature, or its id. Cases with different signatures are independent.
        kind: Call kind, as in verify/cases/kinds.py.
        variants: Names for the specialised forms that it launches, separated by commas.
        reached: Parts of the kernel file that ran, as verify/child/reach.py encodes them.
    """

    case: str
    outcome: Outcome
    detail: str = ""
    report: str = ""
    layer: str = ""
    rule: str = ""
    sandbox: str = ""
    dtypes: str = ""
    signature: str = ""
    kind: str = ""
    variants: str = ""
    reached: str = ""

    @property
    def failed(self) -> bool:
        """Return True if the verdict counts against the kernel; SKIPPED does not."""
        return self.outcome not in (Outcome.PASS, Outcome.SKIPPED)


# Layers that can fail a kernel, in the order in which they check.
LAYERS = {
    "lint": "the source, read against the profile's allow-lists",
    "compile": "every launch, compiled for the platform's targets",
    "dispatch": "operators that the wrapper or a launch asked ATen for",
    "ghost": "the result without any kernel having run",
    "launch": "what was launched, and with which arguments",
    "run": "exceptions of the wrapper",
    "access": "addresses of loads and stores: bounds, alignment, races; memory around arguments",
    "threads": "threads that outlive the call",
    "types": "exact types of results",
    "globals": "state of torch and Python that outlives the call",
    "compare": "structure and values against ATen",
    "cost": "time, memory and grids beyond what the call is worth",
    "draws": "random draws: their distribution, and that they depend on nothing but key, counter and index",
    "rerun": "the launches again where of the file nothing runs but its kernels",
    "repeat": "the same call again: programs in another order, the same memory with new contents, rows far apart",
    "wire": "what the child sent",
    "crash": "how the child ended",
    "time": "the deadline",
}
# Layers that can be switched off, to see which other layer would fail the case. Without the remaining ones there
# is no answer to judge.
OPTIONAL = tuple(layer for layer in LAYERS if layer not in ("run", "wire", "crash", "time"))
