"""Recorder for every ATen call of a PyTorch program.

The package imports nothing from this repository except `traces`, so it is safe in any process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capture.recorder import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str) -> Any:
    """Load the recorder, and with it PyTorch, at first use."""
    if name != "Recorder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from capture.recorder import Recorder

    return Recorder
