"""Bring a PyTorch model up on a new accelerator: record its operators, judge kernels for them, and serve these.

    import enablekit

    with enablekit.Recorder("step.trace", model=model) as recorder:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        recorder.step()

    print(enablekit.coverage("step.trace").as_json()["overloads"])

    with enablekit.use("cuda") as registration:
        train(model)

    fast = torch.compile(model, backend="enablekit")

Importing this package imports neither torch nor NumPy; its attributes do when they are first read.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from traces.errors import TraceError, UserError
from traces.packaging import qualified

if TYPE_CHECKING:
    from capture import sim
    from capture.recorder import Recorder
    from enable.api import compiled_graphs, coverage, verify
    from enable.backend import enablekit as compile_backend
    from enable.library import Registration, register, use
    from traces.store import Trace

__all__ = [
    "Recorder",
    "Registration",
    "Trace",
    "TraceError",
    "UserError",
    "compile_backend",
    "compiled_graphs",
    "coverage",
    "register",
    "sim",
    "use",
    "verify",
]

_HOMES = {
    "Recorder": ("capture.recorder", "Recorder"),
    "Registration": ("enable.library", "Registration"),
    "Trace": ("traces.store", "Trace"),
    "compile_backend": ("enable.backend", "enablekit"),
    "compiled_graphs": ("enable.api", "compiled_graphs"),
    "coverage": ("enable.api", "coverage"),
    "register": ("enable.library", "register"),
    "sim": ("capture.sim", None),
    "use": ("enable.library", "use"),
    "verify": ("enable.api", "verify"),
}

try:
    __version__ = version("enablekit")
except PackageNotFoundError:  # a checkout on PYTHONPATH
    __version__ = "0+checkout"


def __getattr__(name: str) -> Any:
    """Import a public name when it is first read."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; choose from {', '.join(__all__)}")
    home, attribute = _HOMES[name]
    module = import_module(qualified(home))
    value = globals()[name] = module if attribute is None else getattr(module, attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
