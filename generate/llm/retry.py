"""Retry failures that may pass: exponential backoff with jitter, or the wait that the endpoint requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    wait_exponential,
    wait_random_exponential,
)

from generate.llm import ProviderError

MAX_WAIT_S = 120.0  # seconds before one retry; if an endpoint requests more, the call fails
MAX_BACKOFF_S = 30.0  # maximum wait in seconds if the endpoint requests none

_T = TypeVar("_T")


class Passing(Exception):
    """A failure that may pass.

    Attributes:
        after: Seconds that the endpoint asks to wait; None if it does not say.
    """

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


def retrying(attempt: Callable[[], _T], retries: int, backoff: float) -> _T:
    """Return the result of `attempt`, retried after each Passing.

    Args:
        attempt: Function to call.
        retries: Retries after the first attempt.
        backoff: Seconds before the first retry; doubled before each further one.

    Raises:
        ProviderError: With the last cause, if all attempts fail or the endpoint requests too long a wait.
    """
    half = {"multiplier": backoff / 2, "max": MAX_BACKOFF_S / 2}  # one half is fixed and the other half random
    backoff_wait = wait_exponential(**half) + wait_random_exponential(**half)

    def wait(state: RetryCallState) -> float:
        """Return the seconds that the endpoint requests, or else the backoff with jitter, which spreads clients."""
        asked = _failure(state).after
        return backoff_wait(state) if asked is None else asked

    def is_over(state: RetryCallState) -> bool:
        return state.attempt_number > retries or (_failure(state).after or 0.0) > MAX_WAIT_S

    def give_up(state: RetryCallState) -> _T:
        failure = _failure(state)
        if failure.after is not None and failure.after > MAX_WAIT_S:
            raise ProviderError(f"{failure}; the endpoint asks to wait for {failure.after:.0f} s") from None
        raise ProviderError(f"{failure}; tried {state.attempt_number} times") from None

    passing = retry_if_exception_type(Passing)
    return Retrying(retry=passing, wait=wait, stop=is_over, retry_error_callback=give_up)(attempt)


def _failure(state: RetryCallState) -> Passing:
    """Return the exception from the last attempt."""
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, Passing)
    return failure


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers ask to wait, or None.

    Sources: RFC 9110 section 10.2.3, and the common header `retry-after-ms` in milliseconds.
    """
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
