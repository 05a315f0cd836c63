"""Let the threads of PyTorch's autograd come to rest before the interpreter ends."""

from __future__ import annotations

import atexit
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_NAME = "pt_autograd_"  # of the thread of each device, as Linux shows it
_SECONDS = 2.0
_LOOKS = 5  # a thread that waits for the GIL looks idle, and runs before this many looks have released the GIL


@cache
def settle_at_exit() -> None:
    """Wait at the end of this process, at most 2 seconds, until no thread of autograd runs.

    `backward` returns before the device's thread frees the task, which holds Python objects. If the interpreter is at
    its end by then, Python before 3.14 ends that thread, and C++ answers with `terminate called without an active
    exception` (https://github.com/pytorch/pytorch/issues/117762). Devices whose kernels are in C++ end too late to
    show it often; with kernels in Python, one process in four was seen to abort on a busy machine.
    """
    atexit.register(_settle)


def _settle() -> None:
    idle, end = 0, time.monotonic() + _SECONDS
    while idle < _LOOKS and time.monotonic() < end and (states := _states()):
        idle = idle + 1 if set(states) == {"S"} else 0
        time.sleep(0.001)  # releases the GIL


def _states() -> list[str]:
    """Return the scheduler's state of each thread of autograd, such as S for one that sleeps; [] outside Linux."""
    states = []
    for path in Path("/proc/self/task").glob("*/stat"):
        with suppress(OSError):  # the thread ended
            _, name, rest = re.split(r"[()]", path.read_text(errors="replace"), maxsplit=2)
            states += [rest.split()[0]] * name.startswith(_NAME)
    return states
