"""Recorded dialogs as the model: the offline default of the demo and of the tests."""

from __future__ import annotations

from pathlib import Path

from generate.llm import Answer, Options, ProviderError, Request
from generate.recording import Exchange, key, load_recordings, nearest_difference, overloads_in

SHIPPED = Path(__file__).parents[1] / "recordings"


class ReplayProvider:
    """Answers as recorded. Two conversations are the same if they differ in numbers only.

    overloads: of which there is a recording at all.
    """

    name = "replay"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.overloads = overloads_in(directory)
        self._exchanges: list[Exchange] = load_recordings(directory)
        self._answers = {key(e.messages): e.answer for e in reversed(self._exchanges)}  # the first recorded wins

    def complete(self, request: Request) -> Answer:
        """Raises ProviderError that shows the nearest recording and what differs."""
        answer = self._answers.get(key(request.messages))
        if answer is not None:
            return answer
        difference = nearest_difference(request.messages, self._exchanges)
        where = f"no recorded answer in {self._directory} to call {request.number}"
        raise ProviderError(f"{where}; record it with --llm openai or --llm manual. {difference}")


def provider(options: Options) -> ReplayProvider:
    """Raises ProviderError if there is no recording at all, UserError if one is damaged."""
    directory = options.recordings or SHIPPED
    found = ReplayProvider(directory)
    if not found._exchanges:
        raise ProviderError(f"no recordings in {directory}; use --llm openai or --llm manual")
    return found
