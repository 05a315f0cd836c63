"""What tests read or start once for a process."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from enable.options import CACHE_VARIABLE
from generate.library import KERNELS, Library


@cache
def packaged() -> Library:
    """The library of the package."""
    return Library(KERNELS)


def compiled() -> Path:
    """Where judges of tests keep compiled kernels."""
    return Path(os.environ[CACHE_VARIABLE]) / "triton"
