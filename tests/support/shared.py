"""What tests read or start once for a process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from enable.options import CACHE_VARIABLE
from generate.library import KERNELS, Library
from verify.contract.derive import plans


@cache
def packaged() -> Library:
    """The library of the package."""
    return Library(KERNELS)


def without(overloads: Iterable[str], target: Path) -> Path:
    """A copy of the package's kernels without the files that serve these: what is said of operators that lack a kernel
    is tested on operators that may have one."""
    matches = [packaged().match(plan.base) for overload in overloads for plan in plans(overload)]
    dropped = {match.kernel.path for match in matches if match is not None}
    shutil.copytree(KERNELS, target, ignore=lambda place, names: [n for n in names if Path(place) / n in dropped])
    return target


def compiled() -> Path:
    """Where judges of tests keep compiled kernels."""
    return Path(os.environ[CACHE_VARIABLE]) / "triton"
