"""What tests read or start once for a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from enable.options import WORKSPACE
from enable.workspace import Workspace
from generate.kernel_library import KERNELS, Library
from verify import platforms
from verify.contract.derive import plans
from verify.judging.judge import Judge
from verify.judging.verdicts import VerdictStore
from verify.platforms import Platform


@cache
def packaged() -> Library:
    """The library of the package."""
    return Library(KERNELS)


class Launches:
    """Stands for a kernel and notes what it is launched with: grid, arguments and constants of each launch."""

    def __init__(self) -> None:
        self.noted: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, **constants: self.noted.append((grid, args, constants))


def without(overloads: Iterable[str], target: Path) -> Path:
    """A copy of the package's kernels without the files that serve these: what is said of operators that lack a kernel
    is tested on operators that may have one."""
    matches = [packaged().match(plan.base) for overload in overloads for plan in plans(overload)]
    dropped = {match.kernel.path for match in matches if match is not None}
    shutil.copytree(KERNELS, target, ignore=lambda place, names: [n for n in names if Path(place) / n in dropped])
    return target


def sampled(rows: Iterable[Any], in_ci: Sequence[Any]) -> list[Any]:
    """Parameters of a test: those of the sample, which CI runs, and the others, which are swept. Each of the sample is
    one of the rows; a row of several values is a tuple."""
    every = list(rows)
    assert all(row in every for row in in_ci), [row for row in in_ci if row not in every]
    marks = [() if row in in_ci else pytest.mark.sweep for row in every]
    return [
        pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=mark)
        for row, mark in zip(every, marks, strict=True)
    ]


@contextmanager
def judging(
    store: Path, platform: str | Platform = "sim", workers: int = 1, cache: Path | None = None
) -> Iterator[Judge]:
    """Open a judge that keeps its verdicts in a file."""
    verdicts = VerdictStore(store)
    platform = platforms.load(platform) if isinstance(platform, str) else platform
    with Judge(platform, verdicts, workers=workers, cache=cache) as judge:
        yield judge
    verdicts.close()


def compiled() -> Path:
    """Where judges of tests keep compiled kernels: where commands do."""
    return Workspace(WORKSPACE).compiled


def native_modules() -> Path:
    """Return where commands keep modules in C++: whichever test comes first builds one for all."""
    return Workspace(WORKSPACE).native
