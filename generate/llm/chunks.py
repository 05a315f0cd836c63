"""The JSON of a chat completion, whole or in chunks, as an Answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from generate.llm import Answer

MAX_CHARACTERS = 4_000_000  # of an answer with its reasoning; what comes after is not read
_REASONING = ("reasoning_content", "reasoning")  # vLLM, llama.cpp, DeepSeek; Ollama, OpenRouter


class Malformed(Exception):
    """No chat completion; what is wrong with it, in words."""


class Interrupted(Exception):
    """The stream ended before the answer did."""


class RefusedAnswer(Exception):
    """The endpoint tells an error in place of an answer, or in the middle of it. body: the JSON of the error."""

    def __init__(self, body: Any) -> None:
        super().__init__(str(body))
        self.body = body


@dataclass
class _Parts:
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish: str = ""
    length: int = 0
    choices: bool = False

    def add(self, record: Any) -> None:
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
        part = choice.get("delta") or choice.get("message") or {}
        if not isinstance(part, dict) or not choice.keys() & {"delta", "message"}:
            raise Malformed("a choice has no message")
        self._append(self.text, part.get("content") or part.get("refusal"))
        self._append(self.reasoning, next((part[name] for name in _REASONING if part.get(name)), None))
        self.finish = str(choice.get("finish_reason") or self.finish)

    def _append(self, parts: list[str], text: Any) -> None:
        if text is None:
            return
        if not isinstance(text, str):
            raise Malformed("its content is no text")
        parts.append(text)
        self.length += len(text)

    def answer(self, cut: bool) -> Answer:
        text, reasoning = "".join(self.text), "".join(self.reasoning)
        return Answer(text, self.prompt_tokens, self.completion_tokens, reasoning, cut)


def collect(records: Iterable[Any], streamed: bool) -> Answer:
    """The answer that `records` make up: the chunks of a stream, or the one completion.

    Raises Malformed, Interrupted, Refused, and what reading raises. An answer over MAX_CHARACTERS is left off there.
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
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        raise Malformed("its choices are no objects")
    return values


def _count(usage: Any, what: str) -> int:
    found = usage.get(f"{what}_tokens") if isinstance(usage, dict) else None
    if found is None:
        return 0
    if not isinstance(found, int) or found < 0:
        raise Malformed(f"its usage counts {found!r} {what} tokens")
    return found
