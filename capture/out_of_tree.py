"""What a process needs for a device outside PyTorch's tree: `Module.to` as for PyTorch's own, and a quiet end."""

from __future__ import annotations

import atexit
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import parameter

_THREAD = "pt_autograd_"  # begins the name of autograd's thread for a device, as Linux shows it
_SECONDS = 2.0
_LOOKS = 5  # a thread that waits for the GIL looks idle, and runs before this many looks have released the GIL


@cache
def prepare() -> None:
    """Prepare this process, once: modules keep their parameters, and the process ends when autograd's threads rest."""
    _keep_parameters()
    atexit.register(_settle)


def _keep_parameters() -> None:
    """Keep tied parameters tied and lazy ones lazy, for the rest of the process.

    PyTorch cannot move a parameter to an out-of-tree device in place. Without
    `torch.__future__.set_swap_module_params_on_conversion` it makes new parameters, one for each use of a tied one.
    With it, an uninitialized parameter would become an ordinary one without elements.
    """
    torch.__future__.set_swap_module_params_on_conversion(True)
    lazy: Any = parameter.UninitializedTensorMixin  # type: ignore[attr-defined]
    lazy.to = _moved
    lazy.detach = _moved  # Module.to makes a Parameter with the result
    lazy._allowed_methods.append(torch.Tensor.requires_grad_)


def _moved(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Return a new uninitialized parameter or buffer, perhaps with another device or dtype."""
    device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs) if args or kwargs else (None, None)
    lazy_parameter = isinstance(self, parameter.UninitializedParameter)
    kind: Any = parameter.UninitializedParameter if lazy_parameter else parameter.UninitializedBuffer
    return kind(self.requires_grad, device=device or self.device, dtype=dtype or self.dtype)  # type: ignore[no-any-return]


def _settle() -> None:
    """Wait at most 2 seconds until no thread of autograd runs.

    `backward` returns before the device's thread frees the task, which holds Python objects. If the interpreter is at
    its end by then, Python before 3.14 ends that thread, and C++ answers with `terminate called without an active
    exception` (https://github.com/pytorch/pytorch/issues/117762). It was seen with kernels in Python on a busy machine.
    """
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
            states += [rest.split()[0]] * name.startswith(_THREAD)
    return states
