"""Replay recorded answers in order, regardless of the prompt.

This serves the search for faster kernels, whose prompts contain measured times. Each candidate is a complete kernel
file that is judged and timed, so an answer to a prompt with other times is equally valid. The recordings have the
`replay` provider's format.
"""

from __future__ import annotations

from pathlib import Path

from generate.journal import slug
from generate.llm import Answer, Options, ProviderError, Request
from generate.recording import load_recordings, overload_of

SHIPPED = Path(__file__).parents[1] / "recordings" / "tuning"


class TurnsProvider:
    """Answers a run's Nth call with the Nth recorded answer for the operator."""

    name = "turns"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._answers: dict[str, list[Answer]] = {}
        for path in sorted(directory.glob("*.jsonl")):
            operator_answers = self._answers.setdefault(slug(overload_of(path)), [])
            operator_answers += [exchange.answer for exchange in load_recordings(directory, path.name)]

    def complete(self, request: Request) -> Answer:
        """Return the next recorded answer.

        Raises:
            ProviderError: If there are no more.
        """
        operator = request.directory.parent.name
        answers = self._answers.get(operator, [])
        if request.number > len(answers):
            problem = f"call {request.number} of {operator}: {len(answers)} answers are recorded in {self._directory}"
            raise ProviderError(f"{problem}; name that many with --calls, or ask --llm openai or --llm manual")
        return answers[request.number - 1]


def provider(options: Options) -> TurnsProvider:
    """Return the provider for the recordings.

    Raises:
        ProviderError: If the directory has no recordings.
        UserError: If a recording is damaged.
    """
    directory = options.recordings or SHIPPED
    turns = TurnsProvider(directory)
    if not turns._answers:
        raise ProviderError(f"no recordings in {directory}; use --llm openai or --llm manual")
    return turns
