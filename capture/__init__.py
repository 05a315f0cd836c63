"""Recording every ATen call of a PyTorch program. Imports nothing of ours but `traces`, to be safe in any process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capture.recorder import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str) -> Any:
    """Import PyTorch only when the recorder is asked for."""
    if name != "Recorder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from capture.recorder import Recorder

    return Recorder
