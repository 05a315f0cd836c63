"""Discover a dialect: run the catalogue, and find the smallest form of each failing entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from enable import progress
from enable.discover.catalogue import catalogue
from enable.discover.entries import CatalogueEntry
from enable.discover.pool import ENTRY_SECONDS, WorkerPool
from enable.discover.verdicts import SLOW, EntryVerdict, explained, verdict
from traces import UserError

# Bytes of shared memory per program: CUDA C programming guide, table of compute capabilities; AMD's CDNA manuals.
SHARED_BYTES: dict[int | str, int] = {
    **{75: 65536, 80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448, 100: 232448, 103: 232448, 120: 101376},
    **{"gfx90a": 65536, "gfx942": 65536, "gfx950": 163840},
}
USUAL_SHARED_BYTES = 65536
# Type of an architecture by backend, with an example.
_ARCHITECTURES: dict[str, tuple[type, str]] = {
    "cuda": (int, "numbers, such as --arch 90"),
    "hip": (str, "names, such as --arch gfx942"),
}
WAVES = {"hip": 64}  # threads per warp, by backend; 32 elsewhere
SMALL = 1  # block size from which the search for the smallest failing form begins


@dataclass(frozen=True)
class DiscoverOptions:
    """What to run and where.

    Attributes:
        device: PyTorch device type on which entries run; "" to compile only.
        module: Python module whose import makes PyTorch know the device; "" if PyTorch knows it.
        backend: Triton's name for the backend; "" for the one of the device.
        arch: Architecture, as the backend names it.
        warp_size: Threads of a warp; 0 for the backend's usual number.
        shared_bytes: Bytes of shared memory of a program; 0 for the known or usual number.
        only: Patterns of entries; all by default.
        jobs: Number of processes.
        seconds: Time limit for an entry.
    """

    device: str = ""
    module: str = ""
    backend: str = ""
    arch: int | str = ""
    warp_size: int = 0
    shared_bytes: int = 0
    only: tuple[str, ...] = ()
    jobs: int = 2
    seconds: int = ENTRY_SECONDS

    def target(self) -> dict[str, Any] | None:
        """Return the stated target's fields, or None if the device decides."""
        if not self.backend:
            return None
        return {
            "backend": self.backend,
            "arch": self.arch,
            "warp_size": self.warp_size or WAVES.get(self.backend, 32),
            "shared_bytes": self.shared_bytes or SHARED_BYTES.get(self.arch, USUAL_SHARED_BYTES),
        }


@dataclass(frozen=True)
class Discovery:
    """The verdicts on a target or device, by entry name.

    Attributes:
        device: PyTorch device type, or "".
        module: Python module that provides the device, or "".
        target: Fields of the target.
        triton: Triton's version.
        torch: PyTorch's version.
        verdicts: Verdict by entry name.
    """

    device: str
    module: str
    target: Mapping[str, Any]
    triton: str
    torch: str
    verdicts: Mapping[str, EntryVerdict]

    @property
    def label(self) -> str:
        """Return a name for titles, such as `hip gfx942`."""
        target = f"{self.target['backend']} {self.target['arch']}"
        return f"{self.device} ({target})" if self.device else target

    @property
    def failures(self) -> list[EntryVerdict]:
        """Return the failing entries that no simpler entry explains."""
        return [v for v in self.verdicts.values() if v.failed and not v.explained_by]


def discover(options: DiscoverOptions) -> Discovery:
    """Run the catalogue.

    Raises:
        UserError: This Triton has no such backend, the device cannot be used, a pattern matches nothing, or nothing
            works.
    """
    entries = catalogue(options.only)
    kind, example = _ARCHITECTURES.get(options.backend, (object, ""))
    if not isinstance(options.arch, kind):
        raise UserError(f"--arch {options.arch!r}: {options.backend} takes {example}")
    with _judging(options) as (pool, reference):
        described = pool.describe()
        if "problem" in described:
            raise UserError(_absent(options, described))
        references: dict[str, Mapping[str, Any]] = {}
        answers: dict[str, Mapping[str, Any]] = {}
        if reference is not None:
            _run(reference, entries, references, "interpreter")
        _run(pool, entries, answers, f"{'run on' if options.device else 'compile for'} {_name(described['target'])}")
        verdicts = explained({e.name: verdict(e, answers[e.name], references.get(e.name)) for e in entries})
        if all(v.failed for v in verdicts.values()):
            first = next(iter(verdicts.values()))
            raise UserError(
                f"nothing of the catalogue works for {_name(described['target'])}, such as {first.entry.name}: "
                f"{first.message}; check --backend and --arch, or name more entries by --only"
            )
        verdicts = dict(_smallest_forms(verdicts, pool, reference))
    return Discovery(
        options.device, options.module, described["target"], described["triton"], described["torch"], verdicts
    )


def _name(target: Mapping[str, Any]) -> str:
    return f"{target['backend']} {target['arch']}"


@contextmanager
def _judging(options: DiscoverOptions) -> Iterator[tuple[WorkerPool, WorkerPool | None]]:
    """Start the processes for the target or device, and for the interpreter if there is a device."""
    with ExitStack() as stack:
        target = options.target()
        pool = stack.enter_context(
            WorkerPool(options.jobs, target, options.device, options.seconds, module=options.module)
        )
        if not options.device:
            yield pool, None
            return
        yield (
            pool,
            stack.enter_context(WorkerPool(options.jobs, _INTERPRETED, "cpu", options.seconds, interpreted=True)),
        )


_INTERPRETED = {"backend": "cuda", "arch": 90, "warp_size": 32, "shared_bytes": 232448}  # nothing is compiled for it


def _run(pool: WorkerPool, entries: list[CatalogueEntry], answers: dict[str, Mapping[str, Any]], title: str) -> None:
    """Run entries with progress, and store their answers by name."""
    with progress.show_progress(title, len(entries)) as work:

        def done(entry: CatalogueEntry, answer: dict[str, Any]) -> None:
            answers[entry.name] = answer
            work.step(entry.name)

        pool.run(entries, done)


def _absent(options: DiscoverOptions, described: Mapping[str, Any]) -> str:
    """Return the message for a target that cannot be compiled."""
    if "installed" not in described:
        return str(described["problem"])
    return (
        f"Triton {described['triton']} has no backend for {options.backend}:{options.arch}; it has "
        f"{described['installed']}; install the plugin package that declares {options.backend} in the entry points "
        "triton.backends"
    )


def _smallest_forms(
    verdicts: Mapping[str, EntryVerdict], pool: WorkerPool, reference: WorkerPool | None
) -> Iterator[tuple[str, EntryVerdict]]:
    """Yield the verdicts; those of unexplained failures have the smallest block size that fails in the same way."""
    failed = [v for v in verdicts.values() if v.failed and not v.explained_by and v.verdict != SLOW]
    searched = [v for v in failed if v.entry.shrinks]
    with progress.show_progress("smallest failing forms", len(searched)) as work:
        for name, each in verdicts.items():
            if each in searched:
                work.now(name)
                yield name, _smallest(each, pool, reference)
                work.step()
            else:
                yield name, each


def _smallest(failure: EntryVerdict, pool: WorkerPool, reference: WorkerPool | None) -> EntryVerdict:
    """Search for the smallest N by bisection: a block that fails is assumed to fail in larger sizes, too."""

    def fails(size: int) -> bool:
        entry = failure.entry.with_meta(N=size)
        expected = None if reference is None else reference.ask(entry, timed=False)
        return verdict(entry, pool.ask(entry, timed=False), expected).verdict == failure.verdict

    low, high = SMALL, int(failure.entry.meta["N"])
    if fails(low):
        return replace(failure, smallest={"N": low})
    while high > 2 * low:  # low works, high fails
        middle = low << (((high // low).bit_length() - 1) // 2)
        if fails(middle):
            high = middle
        else:
            low = middle
    return replace(failure, smallest={"N": high}, largest_working=low)


def reproducer(failure: EntryVerdict, discovery: Discovery) -> str:
    """Return a program that shows a failure, without this toolkit."""
    entry = failure.entry.with_meta(**failure.smallest) if failure.smallest else failure.entry
    shown = f"# {failure.verdict}: {failure.message}\n# Triton {discovery.triton}, {discovery.label}\n"
    if discovery.device:
        return f"{shown}{entry.text}{_LAUNCH.format(device=discovery.device)}"
    fields = discovery.target
    target = f"{fields['backend']!r}, {fields['arch']!r}, {fields['warp_size']}"
    return f"{shown}{entry.text}{_COMPILATION.format(target=target)}"


_LAUNCH = """

if __name__ == "__main__":
    arguments = inputs({device!r})
    kernel[GRID](*arguments, **META)
    print(arguments[-1])  # with TRITON_INTERPRET=1 and inputs("cpu"): the expected values
"""
_COMPILATION = """

class Driver:  # compiles without a device
    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget({target})

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


if __name__ == "__main__":
    triton.runtime.driver.set_active(Driver())
    print(kernel.warmup(*inputs("cpu"), grid=GRID, **META).metadata)
"""
