"""The models that write kernels. One provider a file in this directory, found by its name.

A provider file defines `provider(options: Options) -> Provider`; nothing else names it anywhere.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from traces import UserError


@dataclass(frozen=True)
class Message:
    """One message of a conversation. role: 'system', 'user' or 'assistant'."""

    role: str
    content: str


@dataclass(frozen=True)
class Request:
    """One call of a model.

    purpose: 'generate' or 'summarize'. number: 1 for a run's first call. directory: of that run, for providers that
    leave files.
    """

    messages: tuple[Message, ...]
    temperature: float
    purpose: str
    number: int
    directory: Path

    def digest(self) -> str:
        """sha256 of what the model is asked, in hex."""
        asked = [[asdict(m) for m in self.messages], self.temperature, self.purpose]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """What a model answered. Token counts are 0 where the provider does not know them."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Options:
    """What the user chose for a provider. recordings: directory of the `replay` provider; None: the shipped one."""

    model: str | None = None
    base_url: str | None = None
    recordings: Path | None = None


class Provider(Protocol):
    """A model. `name` says which, for reports: 'openai gpt-5', 'replay'."""

    name: str

    def complete(self, request: Request) -> Answer:
        """Raises ProviderError, ContextOverflow or Waiting."""


class ProviderError(UserError):
    """The model cannot answer: no key, endpoint down, unknown model, no such recording. The cause, in words."""


class ContextOverflow(Exception):
    """The conversation is longer than the model takes."""


@dataclass
class Waiting(Exception):
    """The answer has to be written by somebody: prompt is the file to read, answer the one to write."""

    prompt: Path
    answer: Path

    def __str__(self) -> str:
        return f"read {self.prompt} and write the answer to {self.answer}"


def provider_names() -> list[str]:
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem != "__init__")


def load_provider(name: str, options: Options | None = None) -> Provider:
    """Raises UserError that lists the choices for an unknown name, ProviderError where it cannot work."""
    if name not in provider_names():
        raise UserError(f"unknown LLM provider {name!r}; choose one of: {', '.join(provider_names())}")
    provider: Provider = importlib.import_module(f"generate.llm.{name}").provider(options or Options())
    return provider


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Upper estimate where a provider counts none: code has three to four characters a token."""
    return sum(len(m.content) // 3 + 8 for m in messages)
