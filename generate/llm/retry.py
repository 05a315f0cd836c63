"""Trying again what may succeed later: exponential backoff with jitter, or the wait that the endpoint asks for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

from generate.llm import ProviderError

MAX_WAIT_S = 120.0  # before one retry; an endpoint that asks for more is given up
MAX_BACKOFF_S = 30.0  # of our own choice

_T = TypeVar("_T")


class Passing(Exception):
    """A failure that may pass. after: seconds that the endpoint asks to wait, if it does."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


def retrying(attempt: Callable[[], _T], retries: int, backoff: float) -> _T:
    """What `attempt` returns, tried again after each Passing. Raises ProviderError with the last cause."""
    for tried in count():
        try:
            return attempt()
        except Passing as failure:
            wait = failure.after
            if wait is not None and wait > MAX_WAIT_S:
                raise ProviderError(f"{failure}; the endpoint asks to wait for {wait:.0f} s") from None
            if tried >= retries:
                raise ProviderError(f"{failure}; tried {tried + 1} times") from None
            time.sleep(_backoff(backoff, tried) if wait is None else wait)
    raise AssertionError("unreachable")


def _backoff(base: float, tried: int) -> float:
    """Seconds: half of the exponential wait for certain, the other half by chance, so that clients come apart."""
    return min(base * 2.0 ** min(tried, 16), MAX_BACKOFF_S) * random.uniform(0.5, 1.0)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer's headers ask to wait (RFC 9110 section 10.2.3, and the usual one in milliseconds)."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if seconds >= 0:  # neither negative nor NaN
            return seconds
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
