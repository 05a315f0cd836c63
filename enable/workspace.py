"""Locate the parts of a workspace: `.enable/` with traces, fusions, kernels, dialogs, cache and verdicts.sqlite."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from enable.options import CACHE_VARIABLE, WORKSPACE, WORKSPACE_VARIABLE
from enable.progress import say
from traces import UserError
from traces.errors import did_you_mean
from traces.program import program_label, program_name, program_words

if TYPE_CHECKING:
    from enable.subgraphs import Fusion
    from generate.kernel_library import Library
    from traces.store import Trace
    from verify.judging.verdicts import VerdictStore
    from verify.platforms import Platform


_VERDICTS = "verdicts.sqlite"


@dataclass(frozen=True)
class Workspace:
    """The paths of one workspace; nothing is created before something is written."""

    root: Path

    def create(self) -> None:
        """Create the directory if necessary. Raise UserError if it is not writable."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            raise UserError(
                f"cannot write to the workspace {self.root} ({error.strerror}); name another with --workspace DIR"
            ) from error

    @property
    def traces(self) -> Path:
        """Return the directory of the traces."""
        return self.root / "traces"

    @property
    def kernels(self) -> Path:
        """Return the directory of kernels that refinement accepted; they take precedence over the base library's."""
        return self.root / "kernels"

    @property
    def dialogs(self) -> Path:
        """Return the directory of the dialogs."""
        return self.root / "dialogs"

    @property
    def verdict_file(self) -> Path:
        """Return the path of the verdict store."""
        return self.root / _VERDICTS

    @property
    def fused(self) -> Path:
        """Return the directory of subgraphs that `enable fuse` found."""
        return self.root / "fusions"

    @property
    def cache(self) -> Path:
        """Return the directory of files that may be removed at any time; ENABLE_CACHE shares one between workspaces."""
        if shared := os.environ.get(CACHE_VARIABLE):
            return Path(shared).absolute()
        return (_aside(self.root) if self.is_read_only else self.root) / "cache"

    @property
    def is_read_only(self) -> bool:
        """Return True if the workspace exists but is not writable."""
        return self.root.is_dir() and not os.access(self.root, os.W_OK)

    @property
    def compiled(self) -> Path:
        """Return the removable directory of compiled kernels.

        Triton stores absolute paths there, so a copied workspace starts with an empty one.
        """
        return self._binaries_directory("triton")

    @property
    def native(self) -> Path:
        """Return the directory of C++ modules (capture/compiled.py), built once per PyTorch version."""
        return self._binaries_directory("native")

    def _binaries_directory(self, name: str) -> Path:
        """Return a directory for binaries whose name depends on its path and this user's key.

        A copied directory, or one that another user made, has another name and is not used.
        """
        from verify.signing import sign

        home = self.cache / name
        signed_directory = home / sign(name, str(home.resolve()))[:12]
        if home.is_dir() and not signed_directory.is_dir() and any(home.iterdir()):
            say(f"{program_label()}: {home}: kernels are compiled again, because this directory was copied or moved")
            with suppress(OSError):  # a read-only directory
                signed_directory.mkdir()  # so that the next command does not repeat the line
        return signed_directory

    def command(self, *words: str) -> str:
        """Return an `enable` command with these words for this workspace."""
        default_root = Path(os.environ.get(WORKSPACE_VARIABLE) or WORKSPACE)
        return shlex.join(
            [*program_words(), *([] if self.root == default_root else ["--workspace", str(self.root)]), *words]
        )

    def trace_path(self, name: str) -> Path:
        """Return the path of the trace named `name`."""
        return self.traces / f"{name}.trace"

    def trace_names(self) -> list[str]:
        """Return the names of all traces."""
        return sorted(p.name.removesuffix(".trace") for p in self.traces.glob("*.trace") if p.is_dir())

    def open_trace(self, name: str, partial: bool = False) -> Trace:
        """Open the trace with this name, for this target of `enable capture`, or at this path.

        `partial` also accepts a trace whose recording did not finish.

        Raises:
            UserError: There is no such trace.
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
        """Return the message for a missing trace."""
        from capture.targets import describe_models

        names = self.trace_names()
        if Path(name).exists():
            kind = "directory" if Path(name).is_dir() else "file"
            return f"{name}: this {kind} is not a trace; name one, see: {self.command('trace', 'list')}"
        existing = f"traces here: {', '.join(names)}" if names else f"{self.traces} holds none yet"
        suggestion = did_you_mean(name, names)
        if suggestion:
            return f"no trace {name!r} ({existing}){suggestion} see: {self.command('trace', 'list')}"
        if name in (*describe_models(), "opinfo") or ":" in name:
            return f"no trace {name!r} ({existing}); record one: {self.command('capture', name)}"
        return f"no trace {name!r} ({existing}); what can be recorded: {program_name()} models"

    def fusions(self) -> dict[str, Fusion]:
        """Return the found subgraphs by overload and define them in PyTorch. Raise TraceError for a damaged file."""
        from enable.subgraphs import load_all

        fusions_by_overload = load_all(self.fused)
        for fusion in fusions_by_overload.values():
            fusion.subgraph.define()
        return fusions_by_overload

    def library(self, base: Path | None, platform: Platform | None = None) -> Library:
        """Return the kernel library: accepted kernels above `base`, or above the packaged kernels.

        A platform's own blocks, if it has any, are linked into the kernels.
        """
        from generate.kernel_library import KERNELS, Library
        from verify.lint import load_profile

        self.fusions()  # define the subgraphs, because kernels may serve them
        return Library(self.kernels, base or KERNELS, blocks=load_profile(platform.lint).blocks if platform else ())

    def verdicts(self) -> VerdictStore:
        """Open or create the verdict store; a read-only workspace gets a temporary one.

        Raises:
            UserError: The store cannot be opened.
        """
        from verify.judging.verdicts import VerdictStore

        if self.is_read_only:
            return VerdictStore(_aside(self.root) / _VERDICTS, say)
        self.create()
        return VerdictStore(self.verdict_file, say)


@cache
def _aside(root: Path) -> Path:
    """Return a temporary directory that replaces a read-only workspace in this process, with a copy of its verdicts."""
    directory = Path(tempfile.mkdtemp(prefix="enable-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for file in root.glob(f"{_VERDICTS}*"):  # including SQLite's write-ahead log
        shutil.copyfile(file, directory / file.name)
    say(f"{program_label()}: {root} is read-only: new verdicts are not kept")
    return directory
