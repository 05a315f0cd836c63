"""The workspace: `.enable/` with traces/, fusions/, kernels/, dialogs/, cache/ and verdicts.sqlite."""

from __future__ import annotations

import atexit
import difflib
import os
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from enable.options import CACHE_VARIABLE, WORKSPACE, WORKSPACE_VARIABLE
from enable.progress import say
from traces import UserError

if TYPE_CHECKING:
    from enable.subgraphs import Fusion
    from generate.kernel_library import Library
    from traces.store import Trace
    from verify.judging.verdicts import VerdictStore
    from verify.platforms import Platform


_VERDICTS = "verdicts.sqlite"


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
    def fused(self) -> Path:
        """Subgraphs that `enable fuse` found."""
        return self.root / "fusions"

    @property
    def cache(self) -> Path:
        """What may be removed at any time; ENABLE_CACHE names a directory for several workspaces."""
        if shared := os.environ.get(CACHE_VARIABLE):
            return Path(shared).absolute()
        return (_aside(self.root) if self.is_read_only else self.root) / "cache"

    @property
    def is_read_only(self) -> bool:
        """Whether it is there and only to be looked at."""
        return self.root.is_dir() and not os.access(self.root, os.W_OK)

    @property
    def compiled(self) -> Path:
        """Compiled kernels; may be removed at any time. Triton keeps whole paths there: a copy begins anew."""
        return self._own("triton")

    @property
    def native(self) -> Path:
        """Modules in C++ (capture/compiled.py), built for each PyTorch."""
        return self._own("native")

    def _own(self, what: str) -> Path:
        """Return a directory for binaries: a copy of it, or one of somebody else's making, has another name."""
        from verify.signing import sign

        home = self.cache / what
        own = home / sign(what, str(home.resolve()))[:12]
        if home.is_dir() and not own.is_dir() and any(home.iterdir()):
            _say_once(
                f"enable: {home}: what was compiled elsewhere or by another user is not used; it is compiled anew"
            )
        return own

    def command(self, *words: str) -> str:
        """What to type: `enable` with these words, for this workspace."""
        usual = Path(os.environ.get(WORKSPACE_VARIABLE) or WORKSPACE)
        return shlex.join(["enable", *([] if self.root == usual else ["--workspace", str(self.root)]), *words])

    def trace_path(self, name: str) -> Path:
        """Where the trace of model `name` is kept."""
        return self.traces / f"{name}.trace"

    def trace_names(self) -> list[str]:
        return sorted(p.name.removesuffix(".trace") for p in self.traces.glob("*.trace"))

    def open_trace(self, name: str, partial: bool = False) -> Trace:
        """The trace of this name, of this target of `enable capture`, or at this path. Raises UserError if none is.

        partial: also one whose recording did not finish.
        """
        from capture.targets import trace_name
        from traces.format import MANIFEST
        from traces.store import Trace

        for path in (self.trace_path(name), self.trace_path(trace_name(name))):
            if path.is_dir():
                return Trace.open(path, partial)
        if (Path(name) / MANIFEST).is_file():
            return Trace.open(Path(name), partial)
        raise UserError(self._no_trace(name))

    def _no_trace(self, name: str) -> str:
        from capture.targets import describe_models

        known = self.trace_names()
        have = f"traces here: {', '.join(known)}" if known else f"{self.traces} holds none yet"
        near = difflib.get_close_matches(name, known, 1)
        if near:
            return f"no trace {name!r} ({have}), did you mean {near[0]}? see: {self.command('trace', 'list')}"
        if name in (*describe_models(), "opinfo") or ":" in name:
            return f"no trace {name!r} ({have}); record one: {self.command('capture', name)}"
        return f"no trace {name!r} ({have}); what can be recorded: enable models"

    def fusions(self) -> dict[str, Fusion]:
        """The subgraphs that were found, by overload; PyTorch knows them from now on. Raises TraceError for a damaged
        file."""
        from enable.subgraphs import load_all

        found = load_all(self.fused)
        for fusion in found.values():
            fusion.subgraph.define()
        return found

    def library(self, base: Path | None, platform: Platform | None = None) -> Library:
        """The kernel library: accepted kernels over `base`, by default the packaged kernels.

        platform: whose own blocks the kernels are linked with, if it has any.
        """
        from generate.kernel_library import KERNELS, Library
        from verify.lint import load_profile

        self.fusions()  # kernels may serve them
        return Library(self.kernels, base or KERNELS, blocks=load_profile(platform.lint).blocks if platform else ())

    def verdicts(self) -> VerdictStore:
        """Opened, or created with the workspace; a copy where that is read-only. Raises UserError if it cannot be."""
        from verify.judging.verdicts import VerdictStore

        if self.is_read_only:
            return VerdictStore(_aside(self.root) / _VERDICTS, say)
        self.create()
        return VerdictStore(self.root / _VERDICTS, say)


@cache
def _say_once(line: str) -> None:
    say(line)


@cache
def _aside(root: Path) -> Path:
    """What stands in for a workspace in which nothing can be written, as long as this process runs: its verdicts, and
    room for others."""
    place = Path(tempfile.mkdtemp(prefix="enable-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for part in root.glob(f"{_VERDICTS}*"):  # with what was written ahead
        shutil.copyfile(part, place / part.name)
    say(f"enable: {root} is read-only: what is judged now is not kept")
    return place
