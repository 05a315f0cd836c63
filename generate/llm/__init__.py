"""The models that write kernels. One provider a file in this directory, found by its name.

A provider file defines `provider(options: Options) -> Provider`; nothing else names it anywhere. Modules without such
a function are parts that providers share.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Protocol

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
    """What a model answered. Token counts are 0 where the provider does not know them.

    reasoning: what it thought, where the endpoint tells; kept, never sent back. cut: it stopped at a limit of tokens.
    size: characters of the whole answer where `text` holds only its head and tail.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: str = ""
    cut: bool = False
    size: int = 0


class Price(NamedTuple):
    """Money for a million tokens, in whatever unit the user counts."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


FREE = Price()


@dataclass(frozen=True)
class Options:
    """What the user chose for a provider; a model for another role has options of its own.

    recordings: directory of the `replay` provider; None: the shipped one. key: the variable, of the environment or of
    ./.env, that holds the key. timeout: seconds without a byte from the endpoint. retries: after the first try.
    backoff: seconds before the first retry, doubled before each further one.
    """

    model: str | None = None
    base_url: str | None = None
    recordings: Path | None = None
    key: str = "OPENAI_API_KEY"
    timeout: float = 600.0  # a reasoning model may think for minutes
    retries: int = 4
    backoff: float = 0.5
    price: Price = FREE


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
    names = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem != "__init__")
    return [name for name in names if hasattr(_module(name), "provider")]


def load_provider(name: str, options: Options | None = None) -> Provider:
    """Raises UserError that lists the choices for an unknown name, ProviderError where it cannot work."""
    if name not in provider_names():
        raise UserError(f"unknown LLM provider {name!r}; choose one of: {', '.join(provider_names())}")
    provider: Provider = _module(name).provider(options or Options())
    return provider


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Upper estimate where a provider counts none: code has three to four characters a token."""
    return sum(len(m.content) // 3 + 8 for m in messages)
