"""The workspace: `.enable/` with traces/, kernels/, dialogs/, cache/ and verdicts.sqlite."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from traces import UserError

if TYPE_CHECKING:
    from generate.library import Library
    from traces.store import Trace
    from verify.verdicts import VerdictStore


@dataclass(frozen=True)
class Workspace:
    """Paths of one workspace; nothing is created before something is written."""

    root: Path

    def create(self) -> None:
        """Make the directory where there is none. Raises UserError if nothing can be written there."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            raise UserError(
                f"cannot write to the workspace {self.root} ({error.strerror}); name another with --workspace DIR"
            ) from error

    @property
    def traces(self) -> Path:
        return self.root / "traces"

    @property
    def kernels(self) -> Path:
        """Kernels that refinement accepted; they go before those of the base library."""
        return self.root / "kernels"

    @property
    def dialogs(self) -> Path:
        return self.root / "dialogs"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def compiled(self) -> Path:
        """Compiled kernels; may be removed at any time."""
        return self.cache / "triton"

    def trace_path(self, name: str) -> Path:
        """Where the trace of model `name` is kept."""
        return self.traces / f"{name}.trace"

    def trace_names(self) -> list[str]:
        return sorted(p.name.removesuffix(".trace") for p in self.traces.glob("*.trace"))

    def open_trace(self, name: str, partial: bool = False) -> Trace:
        """The trace `name`, which may also be the path of a trace directory. Raises UserError if there is none.

        partial: also one whose recording did not finish.
        """
        from traces.format import MANIFEST
        from traces.store import Trace

        stored, given = self.trace_path(name), Path(name)
        if stored.is_dir():
            return Trace.open(stored, partial)
        if (given / MANIFEST).is_file():
            return Trace.open(given, partial)
        known = self.trace_names()
        have = f"traces here: {', '.join(known)}" if known else f"{self.traces} holds none yet"
        raise UserError(f"no trace {name!r} ({have}); record one: enable capture {_capturable(name)}")

    def library(self, base: Path | None) -> Library:
        """The kernel library: accepted kernels over `base`, by default the packaged kernels."""
        from generate.library import KERNELS, Library

        return Library(self.kernels, base or KERNELS)

    def verdicts(self) -> VerdictStore:
        """Opened, or created with the workspace. Raises UserError if that cannot be."""
        from verify.verdicts import VerdictStore

        self.create()
        return VerdictStore(self.root / "verdicts.sqlite")


def _capturable(name: str) -> str:
    """`name` if it can be recorded by name, else the first model there is."""
    from capture.targets import describe_models

    models = list(describe_models())
    return name if name in (*models, "opinfo") else models[0]
