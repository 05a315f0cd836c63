"""What judging one case can end in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The end of one case. Never reduced to a bool: only PASS covers, and the others ask for different work."""

    PASS = "PASS"
    WRONG = "WRONG"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    CHEAT = "CHEAT"
    SKIPPED = "SKIPPED"


FILE, ACCEPTANCE = "file", "acceptance"  # what a verdict may be on beside a case: a text, and whether it is accepted
NO_CASE = (FILE, ACCEPTANCE)
UNREACHED = "UNREACHED"  # the rule of a verdict on acceptance: every case passes, and none reaches all of the file
LINT = "LINT"  # likewise: every case passes, and the file breaks rules of the dialect


@dataclass(frozen=True)
class Verdict:
    """The outcome of one case.

    case: the case's id, or one of NO_CASE. detail: one line for a table. report: the whole evidence as text, fit for a
    prompt: compiler log, accuracy report or traceback; it holds no path, time or address of the machine that ran it.
    layer: the guard that spoke, one of LAYERS; empty for PASS and SKIPPED. rule: which of its rules. sandbox: what
    confined the child. dtypes: floating dtypes of the case's arguments, sorted, with commas, and sparse_coo if one is
    sparse. signature: of the case, or its id; cases of different ones are independent. kind: of the call, as in
    verify/cases/kinds.py. variants: names of what its launches were specialised to, with commas. reached:
    what of the kernel file ran, as verify/child/reach.py tells it.
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
        """Whether it speaks against the kernel; SKIPPED does not."""
        return self.outcome not in (Outcome.PASS, Outcome.SKIPPED)


# What can speak against a kernel, in the order in which they look.
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
# Those that judging can do without, to see what else would have spoken; without the others there is no answer to judge.
OPTIONAL = tuple(layer for layer in LAYERS if layer not in ("run", "wire", "crash", "time"))
