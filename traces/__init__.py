"""Vocabulary and store of recorded operator calls."""

from traces.errors import TraceError, UserError

__all__ = ["TraceError", "UserError"]
