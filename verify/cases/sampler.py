"""What runs in a child that reads OpInfo's samples: its database, which takes seconds to import, is here beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.testing._internal import common_methods_invocations  # noqa: F401 - of the process that forks the child

from traces.values import Packed
from verify.cases.opinfo import keep


class Sampler:
    """As child.serve.Runner: keeps in a file what a request asks."""

    lost = False

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        """Nothing of either is needed."""

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Raises whatever making samples raises, and OSError."""
        keep(Path(header["path"]), header["samples"])
        return {"status": "ok"}, Packed({})
