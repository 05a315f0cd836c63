"""Runner for the child process that reads OpInfo's samples.

Importing this module imports OpInfo's database, which takes seconds, before the child is forked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.testing._internal import common_methods_invocations  # noqa: F401 - imported in the process that forks the child

from traces.values import Packed
from verify.cases.opinfo import keep


class Sampler:
    """Runner in the sense of child.serve.Runner that writes the requested samples to a file."""

    lost = False

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        """Ignore both arguments, because this runner needs neither."""

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Write the requested samples to the file named in the request.

        Raises:
            OSError: The file cannot be written. Exceptions raised while samples are made propagate too.
        """
        keep(Path(header["path"]), header["samples"])
        return {"status": "ok"}, Packed({})
