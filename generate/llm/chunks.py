"""Convert a chat completion's JSON, complete or in chunks, to an Answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from generate.llm import Answer

MAX_CHARACTERS = 4_000_000  # limit for an answer including its reasoning; the rest is not read
_REASONING = ("reasoning_content", "reasoning")  # vLLM, llama.cpp, DeepSeek; Ollama, OpenRouter


class Malformed(Exception):
    """The JSON is not a chat completion; the text says why."""


class Interrupted(Exception):
    """The stream ended before the answer was complete."""


class RefusedAnswer(Exception):
    """The endpoint sent an error instead of an answer, or in the middle of one.

    Attributes:
        body: JSON of the error.
    """

    def __init__(self, body: Any) -> None:
        super().__init__(str(body))
        self.body = body


@dataclass
class _Parts:
    """The parts received so far."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish: str = ""
    length: int = 0
    choices: bool = False

    def add(self, record: Any) -> None:
        """Add one record: a chunk, or a complete completion."""
        if not isinstance(record, dict):
            raise Malformed("it is no object")
        if record.get("error"):
            raise RefusedAnswer(record["error"])
        usage = record.get("usage")
        if usage is not None:
            self.prompt_tokens, self.completion_tokens = _count(usage, "prompt"), _count(usage, "completion")
        for choice in _objects(record.get("choices")):
            self.choices = True
            if choice.get("index") in (None, 0):
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, Any]) -> None:
        """Add a choice's text and reasoning."""
        part = choice.get("delta") or choice.get("message") or {}
        if not isinstance(part, dict) or not choice.keys() & {"delta", "message"}:
            raise Malformed("a choice has no message")
        self._append(self.text, part.get("content") or part.get("refusal"))
        self._append(self.reasoning, next((part[name] for name in _REASONING if part.get(name)), None))
        self.finish = str(choice.get("finish_reason") or self.finish)

    def _append(self, parts: list[str], text: Any) -> None:
        """Append a text to `parts`, and count its characters."""
        if text is None:
            return
        if not isinstance(text, str):
            raise Malformed("its content is no text")
        parts.append(text)
        self.length += len(text)

    def answer(self, cut: bool) -> Answer:
        """Return the parts as an Answer."""
        text, reasoning = "".join(self.text), "".join(self.reasoning)
        return Answer(text, self.prompt_tokens, self.completion_tokens, reasoning, cut)


def collect(records: Iterable[Any], streamed: bool) -> Answer:
    """Return the answer in `records`: the chunks in a stream, or one completion.

    An answer that exceeds MAX_CHARACTERS is truncated. Exceptions from reading pass through.

    Args:
        records: Decoded JSON objects.
        streamed: True for a stream, which has to end with a finish reason.

    Raises:
        Malformed: If a record is not a chat completion.
        Interrupted: If the stream ends early.
        RefusedAnswer: If a record contains an error.
    """
    parts = _Parts()
    for record in records:
        parts.add(record)
        if parts.length > MAX_CHARACTERS:
            return parts.answer(cut=True)
    if streamed and not parts.finish:
        raise Interrupted
    if not parts.choices:
        raise Malformed("it has no choices")
    return parts.answer(cut=parts.finish in ("length", "max_tokens"))


def _objects(values: Any) -> list[dict[str, Any]]:
    """Return the list `choices`, or raise Malformed if it is not a list with objects."""
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        raise Malformed("its choices are no objects")
    return values


def _count(usage: Any, kind: str) -> int:
    """Return the token count for "prompt" or "completion"; 0 if it is missing."""
    count = usage.get(f"{kind}_tokens") if isinstance(usage, dict) else None
    if count is None:
        return 0
    if not isinstance(count, int) or count < 0:
        raise Malformed(f"its usage counts {count!r} {kind} tokens")
    return count
