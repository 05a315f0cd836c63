"""Call-key functions for a recorder, in Python or in C++; C++ takes a fifth of the time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Protocol, TypeVar

from torch._ops import OpOverload

from capture.compiled import NativeModule, Unavailable
from traces.call_keys import key_function

Found = TypeVar("Found")


class ByKey(Protocol):
    """Signature of `traces.call_keys.key_function`."""

    def __call__(self, op: OpOverload, find: Callable[[Hashable], Found]) -> Callable[..., Found]: ...


MODULE = NativeModule("enablekit_keys", Path(__file__).parent / "cpp", "keys of calls")


def maker(directory: str | os.PathLike[str] | None) -> ByKey:
    """Return the C++ key function from this directory, or the Python one if that is unavailable or None is passed.

    Warn if the C++ module is unavailable.
    """
    try:
        return key_function if directory is None else in_cpp(Path(directory))
    except Unavailable as error:
        warnings.warn(f"calls are told apart in Python, not in C++: {error}", RuntimeWarning, stacklevel=3)
        return key_function


def in_cpp(directory: Path) -> ByKey:
    """Return the C++ key function. Raise Unavailable if the module cannot be loaded or built."""
    finder = MODULE.load(directory).finder
    return lambda op, find: finder(find)
