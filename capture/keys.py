"""How a recorder finds the counter of a call: by a key that Python makes, or C++ in a fifth of the time."""

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
    """Like `traces.call_keys.key_function`."""

    def __call__(self, op: OpOverload, find: Callable[[Hashable], Found]) -> Callable[..., Found]: ...


MODULE = NativeModule("enablekit_keys", Path(__file__).parent / "cpp", "keys of calls")


def maker(directory: str | os.PathLike[str] | None) -> ByKey:
    """Return what makes keys in C++, by a module in this directory; if it cannot be had, warn and use Python."""
    try:
        return key_function if directory is None else in_cpp(Path(directory))
    except Unavailable as error:
        warnings.warn(f"calls are told apart in Python, not in C++: {error}", RuntimeWarning, stacklevel=3)
        return key_function


def in_cpp(directory: Path) -> ByKey:
    """Return what makes keys in C++. Raises Unavailable."""
    finder = MODULE.load(directory).finder
    return lambda op, find: finder(find)
