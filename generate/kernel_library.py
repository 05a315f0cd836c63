"""Load the kernel library: all kernel files in one or more directories, discovered by location."""

from __future__ import annotations

import copy
import gc
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from generate import BLOCKS
from traces import UserError
from traces.program import program_name
from verify.contract.derive import COPY, Plan, plans
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.linking import State, state
from verify.lint.profile import DEFAULT

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Match:
    """The kernel that serves an overload, and how it is called.

    Attributes:
        plan: Derivation from the kernel's overload.
        kernel: The kernel file.
        copy: Kernel file for `aten::copy_`, if the plan needs it to write the result.
        refined: True if the kernel comes from a layer above the base.
        upper_layers: The directories of the layers above the base.
    """

    plan: Plan
    kernel: KernelFile
    copy: KernelFile | None
    refined: bool
    upper_layers: tuple[Path, ...] = ()

    @property
    def job(self) -> Job:
        """Return a job without cases that judges how the overload is served.

        Packaged kernels are judged in the default dialect.
        """
        job = Job(self.plan, self.kernel, (), self.copy)
        files = (self.kernel, *((self.copy,) if self.copy else ()), *job.reached)
        return replace(job, dialect=DEFAULT if all(map(_is_packaged, files)) else "")

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return the part of a verdict's identity that names the kernel files."""
        return Job(self.plan, self.kernel, (), self.copy).kernels


class Library:
    """Kernel files in layers; the first layer that has a kernel for an overload takes precedence.

    The last layer is the base, by default the packaged library. The layers above it contain accepted kernels.
    """

    def __init__(self, *layers: Path, blocks: tuple[Path, ...] = ()) -> None:
        """Read the layers.

        Args:
            *layers: Directories, the base last.
            blocks: A platform's directories with blocks, which take precedence over the packaged blocks.

        Raises:
            KernelFileError: If a file breaks the contract.
            UserError: If the base is missing or empty, if two files in a layer list the same overload, or if
                kernels call each other in a cycle.
        """
        if not layers[-1].is_dir():
            raise UserError(f"no kernel library at {layers[-1]}; name another with --library DIR")
        if not kernel_files(layers[-1]):
            raise UserError(f"no kernel files (GROUP/NAME.py) in {layers[-1]}; name another library with --library DIR")
        self.layers, self._blocks = layers, (*blocks, BLOCKS)
        self._linked_candidate: KernelFile | None = None
        with _uncollected():
            self._stack([_claims(layer, self._blocks) for layer in layers])

    def _stack(self, claims: Sequence[Mapping[str, KernelFile]]) -> None:
        """Select each overload's kernel from the first layer that has one.

        Raises UserError if kernels call each other in a cycle.
        """
        self._claims = claims
        self._kernels: dict[str, tuple[KernelFile, bool]] = {}
        for i, layer in enumerate(claims):
            for overload, kernel in layer.items():
                self._kernels.setdefault(overload, (kernel, i < len(claims) - 1))
        self._link_all()

    def __iter__(self) -> Iterator[KernelFile]:
        """Iterate over the kernel files that serve at least one overload, without duplicates."""
        return iter({kernel.path: self._linked[kernel] for kernel, _ in self._kernels.values()}.values())

    def parse(self, source: str, path: Path) -> KernelFile:
        """Return a kernel file as it would be in this library.

        Raises:
            KernelFileError: If the source breaks the contract.
        """
        return KernelFile.parse(source, path, self._blocks)

    def with_candidate(self, kernel: KernelFile, self_consistent: bool = False) -> Library:
        """Return this library with `kernel` above all layers.

        Args:
            kernel: The candidate.
            self_consistent: True to serve the candidate's calls from this library; otherwise it may call only
                the kernels that it was linked with.

        Raises:
            UserError: If kernels would call each other in a cycle.
        """
        library = copy.copy(self)
        library._kernels = {**self._kernels, **dict.fromkeys(kernel.overloads, (kernel, True))}
        library._linked_candidate = None if self_consistent else kernel
        library._link_all()
        return library

    def replacing(self, path: Path, kernel: KernelFile | None) -> Library:
        """Return this library with `kernel` as the first layer's file at `path`, or without that file if it is None.

        Raises:
            UserError: If two files would list the same overload, or kernels would call each other in a cycle.
        """
        library = copy.copy(self)
        first = {o: k for o, k in self._claims[0].items() if k.path != path}
        if kernel is not None:
            for overload in kernel.overloads:
                _claim(first, overload, kernel)
        library._stack([first, *self._claims[1:]])
        return library

    def kernel(self, overload: str) -> KernelFile | None:
        """Return the file that lists `overload` itself, without derivation; None if there is none."""
        entry = self._kernels.get(overload)
        return self._linked[entry[0]] if entry else None

    def callers(self, overloads: Collection[str]) -> list[str]:
        """Return the overloads whose kernels call one of these."""
        called = set(overloads)
        return sorted({o for o, (kernel, _) in self._kernels.items() if called & set(kernel.calls)})

    def _link_all(self) -> None:
        """Link all kernels with the kernels that they call."""
        self._linked: dict[KernelFile, KernelFile] = {}
        for kernel, _ in self._kernels.values():
            self._link(kernel, ())

    def _link(self, kernel: KernelFile, callers: tuple[KernelFile, ...]) -> KernelFile:
        """Return the kernel linked with its callees, recursively.

        Raises UserError if the recursion reaches one of `callers`.
        """
        if kernel in callers:
            cycle = [*callers[callers.index(kernel) :], kernel]
            names = ", which calls ".join(k.overloads[0] for k in cycle[1:])
            raise UserError(
                f"{cycle[0].path}: {cycle[0].overloads[0]} calls {names}; kernels must not call each other in a cycle"
            )
        if kernel not in self._linked:
            if kernel is self._linked_candidate:
                self._linked[kernel] = kernel
            else:
                called = {o: self._kernels[o][0] for o in kernel.calls if o in self._kernels}
                callees = tuple((o, self._link(k, (*callers, kernel))) for o, k in called.items())
                self._linked[kernel] = replace(kernel, callees=callees) if callees != kernel.callees else kernel
        return self._linked[kernel]

    def match(self, overload: str) -> Match | None:
        """Return the best way in which this library can serve `overload`, or None."""
        copier = self.kernel(COPY)
        for plan in plans(overload):
            entry = self._kernels.get(plan.base)
            if entry is None:
                continue
            kernel, refined = self._linked[entry[0]], entry[1]
            if plan.whole and not kernel.takes_out:
                continue
            needs_copy = plan.written is not None and (plan.written == "out" or not kernel.takes_out)
            if not needs_copy or copier is not None:
                return Match(plan, kernel, copier if needs_copy else None, refined, self.layers[:-1])
        return None


def _is_packaged(file: KernelFile) -> bool:
    """Return True for a packaged kernel file, and for a copy of one in another library."""
    return file.written == _packaged_text(f"{file.path.parent.name}/{file.path.name}")


@cache
def _packaged_text(name: str) -> str:
    """Return the text of a packaged kernel file, GROUP/NAME.py; "" if there is none."""
    try:
        return (KERNELS / name).read_text(encoding="utf-8")
    except OSError:
        return ""


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection, which would traverse the syntax trees repeatedly and take half the loading time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def kernel_files(directory: Path) -> Sequence[Path]:
    """Return the kernel files in one layer: `<group>/<name>.py`.

    Raises:
        UserError: If a file is not in a group.
    """
    for path in sorted(directory.glob("*.py")):
        take_out = shlex.join(["mv", str(path), path.name])
        raise UserError(
            f"{path}: lies in no group, so nothing would ask it; take it out, then judge and add it: "
            f"{take_out} && {program_name()} library add {shlex.quote(path.name)}"
        )
    return sorted(directory.glob("*/*.py"))


def _claims(directory: Path, blocks: tuple[Path, ...]) -> Mapping[str, KernelFile]:
    """Return each overload's kernel in a layer; the result is cached until a file changes."""
    return _read_claims(tuple((path, *_stamp(path)) for path in kernel_files(directory)), blocks, state(blocks))


def _stamp(path: Path) -> tuple[int, ...]:
    """Return a value that changes when the file is written or replaced; () if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


@lru_cache(maxsize=16)
def _read_claims(stamps: tuple[tuple[Any, ...], ...], blocks: tuple[Path, ...], now: State) -> dict[str, KernelFile]:
    """Read the kernel files; `stamps` and `now` are the cache key."""
    claims: dict[str, KernelFile] = {}
    for path, *_ in stamps:
        # linking 526 packaged files takes longer than reading them, and a command uses few
        kernel = KernelFile.read(path, blocks, now, linked=path.parents[1] != KERNELS or blocks != (BLOCKS,))
        for overload in kernel.overloads:
            _claim(claims, overload, kernel)
    return claims


def _claim(claims: dict[str, KernelFile], overload: str, kernel: KernelFile) -> None:
    """Add a kernel for an overload, or raise UserError if another file already lists it."""
    if overload in claims:
        raise UserError(f"{kernel.path}: {overload} is already served by {claims[overload].path}; remove one of them")
    claims[overload] = kernel
