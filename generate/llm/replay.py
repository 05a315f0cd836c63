"""Replay recorded dialogs as the model: the offline default for the demo and the tests."""

from __future__ import annotations

from pathlib import Path

from generate.llm import Answer, Options, ProviderError, Request
from generate.recording import Exchange, key, load_recordings, nearest_difference, overloads_in

SHIPPED = Path(__file__).parents[1] / "recordings"


class ReplayProvider:
    """Returns recorded answers. Two conversations are equal if they differ only in numbers.

    Attributes:
        overloads: Operators with a recording.
    """

    name = "replay"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.overloads = overloads_in(directory)
        self._exchanges: list[Exchange] = load_recordings(directory)
        self._answers = {key(e.messages): e.answer for e in reversed(self._exchanges)}  # the first recorded wins

    def complete(self, request: Request) -> Answer:
        """Return the recorded answer.

        Raises:
            ProviderError: If there is none; the text shows the nearest recording and the differences.
        """
        answer = self._answers.get(key(request.messages))
        if answer is not None:
            return answer
        difference = nearest_difference(request.messages, self._exchanges)
        problem = f"no recorded answer in {self._directory} to call {request.number}"
        raise ProviderError(f"{problem}; record it with --llm openai or --llm manual. {difference}")


def provider(options: Options) -> ReplayProvider:
    """Return the provider for the recordings.

    Raises:
        ProviderError: If the directory has no recordings.
        UserError: If a recording is damaged.
    """
    directory = options.recordings or SHIPPED
    replay = ReplayProvider(directory)
    if not replay._exchanges:
        raise ProviderError(f"no recordings in {directory}; use --llm openai or --llm manual")
    return replay
