"""Define the interface to language models: messages, requests, answers and providers.

Each provider is one module in this package with a function `provider(options: Options) -> Provider`, and is discovered
by its file name. Modules without such a function contain shared parts.
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
from traces.errors import choose_from


@dataclass(frozen=True)
class Message:
    """One message in a conversation.

    Attributes:
        role: 'system', 'user' or 'assistant'.
        content: Text.
    """

    role: str
    content: str


@dataclass(frozen=True)
class Request:
    """One call to a model.

    Attributes:
        messages: The conversation.
        temperature: Sampling temperature.
        purpose: 'generate' or 'summarize'.
        number: Number within the run, from 1.
        directory: The run's directory, for providers that write files.
    """

    messages: tuple[Message, ...]
    temperature: float
    purpose: str
    number: int
    directory: Path

    def digest(self) -> str:
        """Return the SHA-256 in hex over messages, temperature and purpose."""
        fields = [[asdict(m) for m in self.messages], self.temperature, self.purpose]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """A model's answer.

    Attributes:
        text: Text.
        prompt_tokens: Tokens in the request; 0 if the provider does not report them.
        completion_tokens: Tokens in the answer, including reasoning; 0 if the provider does not report them.
        reasoning: Reasoning text, if the endpoint sends it; stored, and never sent back.
        cut: True if the answer was truncated at a token limit.
        size: Characters in the complete answer if `text` holds only its head and tail.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: str = ""
    cut: bool = False
    size: int = 0


class Price(NamedTuple):
    """Money per million tokens, in the user's currency unit."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price for one call."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


FREE = Price()


@dataclass(frozen=True)
class Options:
    """The user's options for a provider; a second model, such as the summarizer, has its own options.

    Attributes:
        model: Model name.
        base_url: Endpoint.
        recordings: Directory for the `replay` and `turns` providers; None for the packaged one.
        key: Variable that holds the API key, in the environment or in ./.env.
        timeout: Seconds without a byte from the endpoint before the call fails.
        retries: Retries after the first attempt.
        backoff: Seconds before the first retry; doubled before each further one.
        price: Price per million tokens.
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
    """A language model. `name` identifies it in reports, for example 'openai gpt-5' or 'replay'."""

    name: str

    def complete(self, request: Request) -> Answer:
        """Return the model's answer.

        Raises:
            ProviderError: If the model cannot answer.
            ContextOverflow: If the conversation is too long.
            Waiting: If a person or another program has to write the answer.
        """


class ProviderError(UserError):
    """The model cannot answer, for example without a key, a recording or a known model; the text gives the cause."""


class ContextOverflow(Exception):
    """The conversation exceeds the model's context length."""


@dataclass
class Waiting(Exception):
    """A person or another program has to write the answer.

    Attributes:
        prompt: File with the prompt.
        answer: File for the answer.
    """

    prompt: Path
    answer: Path

    def __str__(self) -> str:
        return f"read {self.prompt} and write the answer to {self.answer}"


def provider_names() -> list[str]:
    """Return the names for all modules that define a provider."""
    names = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem != "__init__")
    return [name for name in names if hasattr(_module(name), "provider")]


def load_provider(name: str, options: Options | None = None) -> Provider:
    """Return the provider with this name.

    Raises:
        UserError: If the name is unknown; the message lists the choices.
        ProviderError: If the provider cannot be used.
    """
    if name not in provider_names():
        raise UserError(f"unknown LLM provider {name!r}{choose_from(name, provider_names())}")
    provider: Provider = _module(name).provider(options or Options())
    return provider


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Return an upper estimate for the token count; code has three to four characters per token.

    Used if a provider reports no counts.
    """
    return sum(len(m.content) // 3 + 8 for m in messages)
