"""Define the state machine's task: one operator, with all data that a prompt may contain."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from generate.validation import validated
from traces import UserError
from traces.format import write_durably
from traces.program import program_name
from verify.outcome import Verdict


@dataclass(frozen=True)
class Task:
    """An operator to write or repair a kernel for.

    Attributes:
        overload: The operator.
        schemas: The overload's schema, then those for other overloads that the file may serve.
        dtypes: Dtypes to support.
        path: Path for an accepted kernel.
        docs: Documentation from `generate.docs`.
        cases: Recorded inputs for the first few cases, one line each, from `generate.signatures`.
        source: Current kernel; None if there is none.
        failing: The current kernel's first case that neither passes nor is skipped.
        profile: Dialect.
        command: Command that resumes the run after an interruption.
        calls: Library overloads that the wrapper may call.
        draws: How the operator is judged if it draws random numbers: by a `law`, or exactly because the draws are
            `fixed`; '' if it does not draw.
        sized_by_data: True if values determine the result's size.
        numbers: Tensor arguments for which calls pass Python numbers.
        chip: Section of the prompt on a user's own chip; '' on the toolkit's platforms.
        search: Text that a search for faster kernels adds to the prompt (generate/kernel_search/); `source` is then
            correct and has to become faster.
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
    command: str = field(default_factory=lambda: f"{program_name()} refine")
    calls: tuple[str, ...] = ()
    draws: str = ""
    sized_by_data: bool = False
    numbers: tuple[str, ...] = ()
    search: str = ""
    chip: str = ""

    def digest(self) -> str:
        """Return the SHA-256 in hex over all fields that a prompt depends on."""
        fields: dict[str, Any] = asdict(self)
        for name in ("path", "command"):
            del fields[name]
        for name in ("calls", "draws", "sized_by_data", "numbers", "search", "chip"):
            if not fields[name]:
                del fields[name]  # absent if unset, so that older journals, without these fields, have the same digest
        return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the task as JSON."""
        write_durably(path, [json.dumps(asdict(self), indent=1).encode()])

    @classmethod
    def load(cls, path: Path) -> Task:
        """Return the task in a file that `save` wrote.

        Raises:
            UserError: If the file is damaged.
        """
        try:
            return validated(cls, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: damaged ({error!r}); move it away to begin this operator anew") from error
