"""Vocabulary and store for recorded operator calls.

Importing this package imports neither torch nor NumPy: `__getattr__` loads each exported name at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from traces.errors import TraceError, UserError

if TYPE_CHECKING:
    from traces.format import jsonable
    from traces.records import CallRecord, Signature
    from traces.replay import Report, verify
    from traces.store import Trace
    from traces.writer import TraceWriter

__all__ = ["CallRecord", "Report", "Signature", "Trace", "TraceError", "TraceWriter", "UserError", "jsonable", "verify"]

_HOMES = {
    "CallRecord": "records",
    "Signature": "records",
    "Trace": "store",
    "TraceWriter": "writer",
    "Report": "replay",
    "verify": "replay",
    "jsonable": "format",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
