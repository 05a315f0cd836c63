"""What the state machine is asked to do: one operator, with all that a prompt may say of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generate.validation import validated
from traces import UserError
from traces.format import write_durably
from verify.outcome import Verdict


@dataclass(frozen=True)
class Task:
    """One operator to write a kernel for, or whose kernel to mend.

    schemas: of the overload first, then of others that the file may serve. docs: from `generate.docs`. cases: the
    recorded inputs of the first few cases, one line each (`generate.signatures`). source, failing: the current kernel
    and its first case that neither passes nor is skipped. path: where an accepted kernel belongs. profile: the
    dialect. command: what the user types to go on after an interruption. calls: overloads of the library that the
    wrapper may call. draws: how it is judged if it may draw random numbers: by a `law`, or
    exactly, since these are `fixed`. sized_by_data: whether values decide how large the result is. numbers: tensors of
    the schemas for which calls give Python numbers. search: what a search for speed adds to the prompt
    (generate/kernel_search/): `source` is right then, and is to be made faster.
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
    calls: tuple[str, ...] = ()
    draws: str = ""
    sized_by_data: bool = False
    numbers: tuple[str, ...] = ()
    search: str = ""

    def digest(self) -> str:
        """sha256, in hex, of all that a prompt depends on."""
        fields: dict[str, Any] = asdict(self)
        for name in ("path", "command"):
            del fields[name]
        for name in ("calls", "draws", "sized_by_data", "numbers", "search"):
            if not fields[name]:
                del fields[name]  # as in journals that were begun before there were any
        return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()

    def save(self, path: Path) -> None:
        write_durably(path, [json.dumps(asdict(self), indent=1).encode()])

    @classmethod
    def load(cls, path: Path) -> Task:
        """What `save` wrote. Raises UserError if it is damaged."""
        try:
            return validated(cls, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: damaged ({error!r}); move it away to begin this operator anew") from error
