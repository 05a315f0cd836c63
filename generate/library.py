"""The library: every kernel file under one or more directories, found by location."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traces import UserError
from verify.derive import COPY, Plan, plans
from verify.kernel_file import KernelFile

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Match:
    """The kernel that serves an overload, and how. refined: it comes from a layer above the base."""

    plan: Plan
    kernel: KernelFile
    copy: KernelFile | None
    refined: bool


class Library:
    """Kernel files in layers: an overload's kernel is that of the first layer which has one.

    The last layer is the base (by default the packaged library); those above hold what refinement accepted.
    """

    def __init__(self, *layers: Path) -> None:
        """Raises KernelFileError on a file that breaks the contract, UserError on a missing base or a double claim."""
        if not layers[-1].is_dir():
            raise UserError(f"no kernel library at {layers[-1]}; name another with --library DIR")
        if not kernel_files(layers[-1]):
            raise UserError(f"no kernel files (GROUP/NAME.py) in {layers[-1]}; name another library with --library DIR")
        self.layers = layers
        self._kernels: dict[str, tuple[KernelFile, bool]] = {}
        for layer in layers:
            for overload, kernel in _claims(layer).items():
                self._kernels.setdefault(overload, (kernel, layer != layers[-1]))

    def __iter__(self) -> Iterator[KernelFile]:
        """Each kernel file that serves at least one overload, once."""
        return iter({kernel.path: kernel for kernel, _ in self._kernels.values()}.values())

    def with_candidate(self, kernel: KernelFile) -> Library:
        """The same library with `kernel` before all layers."""
        library = copy.copy(self)
        library._kernels = {**self._kernels, **dict.fromkeys(kernel.overloads, (kernel, True))}
        return library

    def kernel(self, overload: str) -> KernelFile | None:
        """The file that lists `overload` itself, not by derivation."""
        found = self._kernels.get(overload)
        return found[0] if found else None

    def match(self, overload: str) -> Match | None:
        """The best way this library has to serve `overload`, or None."""
        copier = self.kernel(COPY)
        for plan in plans(overload):
            found = self._kernels.get(plan.base)
            if found is None:
                continue
            kernel, refined = found
            needs_copy = plan.written is not None and (plan.written == "out" or not kernel.takes_out)
            if not needs_copy or copier is not None:
                return Match(plan, kernel, copier if needs_copy else None, refined)
        return None


def kernel_files(directory: Path) -> Sequence[Path]:
    """The kernel files of one layer: `<group>/<name>.py`."""
    return sorted(directory.glob("*/*.py"))


def _claims(directory: Path) -> dict[str, KernelFile]:
    claims: dict[str, KernelFile] = {}
    for path in kernel_files(directory):
        kernel = KernelFile.read(path)
        for overload in kernel.overloads:
            if overload in claims:
                raise UserError(f"{path}: {overload} is already served by {claims[overload].path}; remove one of them")
            claims[overload] = kernel
    return claims
