"""Recorded answers in their order, whatever is asked: of a search for speed, whose prompts tell what was measured.

Its candidates are whole kernel files, each of which is judged and timed, so that an answer to a prompt with other times
is as good. The recordings are those of the `replay` provider.
"""

from __future__ import annotations

from pathlib import Path

from generate.journal import slug
from generate.llm import Answer, Options, ProviderError, Request
from generate.recording import load_recordings, overload_of

SHIPPED = Path(__file__).parents[1] / "recordings" / "tuning"


class TurnsProvider:
    """The answer to a run's Nth call is the Nth that was recorded about the operator."""

    name = "turns"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._answers: dict[str, list[Answer]] = {}
        for path in sorted(directory.glob("*.jsonl")):
            of = self._answers.setdefault(slug(overload_of(path)), [])
            of += [exchange.answer for exchange in load_recordings(directory, path.name)]

    def complete(self, request: Request) -> Answer:
        """Raises ProviderError where there are no more."""
        operator = request.directory.parent.name
        answers = self._answers.get(operator, [])
        if request.number > len(answers):
            what = f"call {request.number} of {operator}: {len(answers)} answers are recorded in {self._directory}"
            raise ProviderError(f"{what}; name that many with --calls, or ask --llm openai or --llm manual")
        return answers[request.number - 1]


def provider(options: Options) -> TurnsProvider:
    """Raises ProviderError if there is no recording, UserError if one is damaged."""
    directory = options.recordings or SHIPPED
    found = TurnsProvider(directory)
    if not found._answers:
        raise ProviderError(f"no recordings in {directory}; use --llm openai or --llm manual")
    return found
