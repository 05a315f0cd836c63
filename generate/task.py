"""What the state machine is asked to do: one operator, with all that a prompt may say of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from verify.outcome import Verdict


@dataclass(frozen=True)
class Task:
    """One operator to write a kernel for, or whose kernel to mend.

    schemas: of the overload first, then of others that the file may serve. docs: from `generate.docs`. cases: the
    recorded inputs of the first few cases, one line each (`generate.signatures`). source, failing: the current kernel
    and its first case that neither passes nor is skipped. path: where an accepted kernel belongs. profile: the
    dialect. command: what the user types to go on after an interruption.
    """

    overload: str
    schemas: tuple[str, ...]
    dtypes: tuple[str, ...]
    path: str
    docs: str = ""
    cases: tuple[str, ...] = ()
    source: str | None = None
    failing: Verdict | None = None
    profile: str = "triton"
    command: str = "enable refine"

    def digest(self) -> str:
        """sha256, in hex, of all that a prompt depends on."""
        fields: dict[str, Any] = asdict(self)
        for name in ("path", "command"):
            del fields[name]
        return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()
