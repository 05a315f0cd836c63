"""Call any OpenAI-compatible endpoint.

OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment or from ./.env.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from generate.llm import Answer, ContextOverflow, Options, ProviderError, Request
from generate.llm.chunks import MAX_CHARACTERS, Interrupted, Malformed, RefusedAnswer, collect
from generate.llm.retry import Passing, retry_after, retrying

if TYPE_CHECKING:
    from openai import OpenAI, Stream

OPENAI = "https://api.openai.com/v1"
_FORMS: tuple[dict[str, Any], ...] = (  # request options; if an endpoint rejects one form, the next is used
    {"stream": True, "stream_options": {"include_usage": True}},
    {"stream": True},
    {},
)
_EMPTY = "(empty)"  # replaces empty content, because some endpoints reject messages without content
_PASSING = frozenset({408, 409, 425, 429})  # HTTP statuses that are retried, in addition to 5xx
_HINTS = {
    401: "the key was refused; set {key} to a valid one",
    403: "the key may not use this model; choose another with --model",
    404: "no model {model!r} here; choose another with --model",
    429: "too many requests or no quota; try again later",
}
_OVERFLOW_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_OVERFLOW = re.compile(
    r"context[ _-]?(length|size|window)"  # OpenAI, vLLM up to 0.8, llama.cpp, Ollama, SGLang, LM Studio, Mistral
    r"|maximum model length|too long to fit into the model|max_model_len"  # vLLM
    r"|(prompt|input|messages?)\b.{0,60}\btoo (long|large)"  # Anthropic, llama.cpp, Ollama
    r"|input token count\b.{0,40}\bexceeds"  # Gemini
    r"|\btokens\b.{0,60}\bmust be <=",  # TGI
    re.IGNORECASE | re.DOTALL,
)


class _Failure(NamedTuple):
    """An endpoint's error.

    Attributes:
        status: HTTP status; None for an error inside a stream that began successfully.
        body: Decoded JSON body.
        message: Message.
        headers: HTTP headers.
    """

    status: int | None
    body: Any
    message: str
    headers: Mapping[str, str]

    @property
    def codes(self) -> list[str]:
        """Return the error's codes and types."""
        body = self.body if isinstance(self.body, dict) else {}
        return [str(body[name]) for name in ("code", "type") if body.get(name) is not None]

    @property
    def is_overflow(self) -> bool:
        """Return True if the conversation is too long."""
        if self.status not in (None, 400, 413, 422, 500):
            return False
        return any(code in _OVERFLOW_CODES for code in self.codes) or _OVERFLOW.search(self.message) is not None

    @property
    def is_passing(self) -> bool:
        """Return True if a retry may succeed."""
        if "insufficient_quota" in self.codes:
            return False
        status = self.status
        if status is None:
            numbers = [int(c) for c in self.codes if c.isdecimal()]
            status = numbers[0] if numbers else 500
        return status in _PASSING or status >= 500

    @property
    def is_about_streaming(self) -> bool:
        """Return True if the endpoint rejects the streaming options."""
        words = f"{self.message} {self.body}".lower()
        return self.status in (400, 404, 405, 415, 422, 501) and re.search(r"\bstream", words) is not None


class OpenAIProvider:
    """Chat completions, streamed if the endpoint supports it. No message contains the key."""

    def __init__(self, options: Options, url: SplitResult, key: str) -> None:
        from openai import OpenAI  # deferred: half a second

        self.name = f"openai {options.model}"
        self._options = options
        host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
        self._where = f"LLM endpoint {url.scheme}://{host}{f':{url.port}' if url.port else ''}{url.path}"
        self._secrets = re.compile("|".join(_secrets(key, url)))
        self._form = 0
        self._client: OpenAI = OpenAI(api_key=key, base_url=url.geturl(), timeout=options.timeout, max_retries=0)

    def complete(self, request: Request) -> Answer:
        """Return the model's answer; retry failures that may pass, and fall back to simpler request forms.

        Raises:
            ProviderError: If the model cannot answer; the text is one line.
            ContextOverflow: If the endpoint reports that the conversation is too long.
        """
        while True:
            form = self._form
            try:
                return retrying(partial(self._attempt, request, form), self._options.retries, self._options.backoff)
            except _StreamingRefused:
                self._form = max(self._form, form + 1)

    def _attempt(self, request: Request, form: int) -> Answer:
        """Send one request. Raises Passing if a retry may succeed."""
        import httpx2  # the client uses it, and its errors are raised while a body is read
        import openai

        body = {
            "model": self._options.model,
            "messages": [{"role": m.role, "content": m.content or _EMPTY} for m in request.messages],
            "temperature": request.temperature,
            **_FORMS[form],
        }
        try:
            with self._client.post(
                "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=openai.Stream[object]
            ) as stream:
                return _read(stream)
        except openai.APIStatusError as error:
            message = _message(error.body) or error.message
            failure = _Failure(error.status_code, error.body, message, error.response.headers)
            raise self._exception_for(failure, form) from None
        except RefusedAnswer as error:
            raise self._exception_for(
                _Failure(None, error.body, _message(error.body) or str(error), {}), form
            ) from None
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise Passing(f"{self._where}: no answer within {self._options.timeout:g} s; try again later") from None
        except (openai.APIConnectionError, httpx2.TransportError, Interrupted) as error:
            raise Passing(self._lost(error.__cause__ or error)) from None
        except openai.APIError as error:
            raise self._exception_for(_Failure(None, error.body, error.message, {}), form) from None
        except (openai.OpenAIError, httpx2.HTTPError, Malformed, ValueError) as error:
            raise ProviderError(f"{self._where}: malformed answer ({self._clean(str(error))})") from None

    def _exception_for(self, failure: _Failure, form: int) -> Exception:
        """Return the exception for a failure."""
        if failure.is_overflow:
            return ContextOverflow()
        if failure.is_about_streaming and form + 1 < len(_FORMS):
            return _StreamingRefused()
        hint = _HINTS.get(failure.status or 0, "the request failed")
        hint = hint.format(key=self._options.key, model=self._options.model)
        details = "" if failure.status == 401 else f" ({self._clean(failure.message)})"
        status = f"HTTP {failure.status}" if failure.status else "in the middle of an answer"
        text = f"{self._where}: {status}: {hint}{details}"
        return Passing(text, retry_after(failure.headers)) if failure.is_passing else ProviderError(text)

    def _lost(self, cause: BaseException) -> str:
        """Return the message for a connection error."""
        import httpx2

        details = self._clean(str(cause))
        if isinstance(cause, httpx2.ConnectError):
            return f"{self._where}: cannot connect ({details}); check OPENAI_BASE_URL"
        return f"{self._where}: the connection was lost ({details or 'the stream ended early'}); try again later"

    def _clean(self, text: str) -> str:
        """Return a text as one line with at most 300 characters, without the key or parts of it."""
        return " ".join(self._secrets.sub("***", text).split())[:300]


class _StreamingRefused(Exception):
    """The endpoint rejects this request form."""


def _message(body: Any) -> str:
    """Return the message in an error's JSON; '' if its form is unknown."""
    if isinstance(body, dict):
        return str(body.get("message") or body.get("detail") or "")
    return body if isinstance(body, str) else ""


def _read(stream: Stream[object]) -> Answer:
    """Return the answer in a response, streamed or not."""
    if stream.response.headers.get("content-type", "").startswith("text/event-stream"):
        return collect(stream, streamed=True)
    return collect(_whole(stream), streamed=False)


def _whole(stream: Stream[object]) -> Iterator[Any]:
    """Yield the JSON in a response that is not streamed.

    Raises Malformed if the body is too long or is not JSON. Exceptions from reading pass through.
    """
    body = bytearray()
    for part in stream.response.iter_bytes():
        body += part
        if len(body) > 8 * MAX_CHARACTERS:
            raise Malformed(f"it is longer than {8 * MAX_CHARACTERS} bytes")
    try:
        yield json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is no JSON: {error}") from None


def _secrets(key: str, url: SplitResult) -> Iterator[str]:
    """Yield patterns for secrets: the key, words with its first 8 characters, and the URL's password and query."""
    yield re.escape(key)
    if len(key) > 12:
        yield re.escape(key[:8]) + r"\S*"
    yield from (re.escape(part) for part in (url.password, url.query) if part)


def _settings() -> dict[str, str]:
    """Return the environment merged over ./.env.

    Raises ProviderError if the file cannot be read.
    """
    from dotenv import dotenv_values

    try:
        file_values = dotenv_values(".env", interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text in UTF-8"
        raise ProviderError(f".env: cannot be read ({reason}); write lines NAME=VALUE or remove it") from None
    return {name: value for name, value in file_values.items() if value} | {k: v for k, v in os.environ.items() if v}


def _checked_url(text: str) -> SplitResult:
    """Return the parsed URL, or raise ProviderError if it is not usable; the message omits its password."""
    shown = re.sub(r"//[^/@]*@", "//***@", text.partition("?")[0])
    try:
        url = urlsplit(text)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0 and not re.search(r"\s", text):
            return url
    except ValueError:  # an invalid port or IPv6 address
        pass
    example = "http://127.0.0.1:8000/v1"
    raise ProviderError(f"{shown!r} is no URL of an LLM endpoint; give one such as {example} with --base-url")


def provider(options: Options) -> OpenAIProvider:
    """Return a provider for the endpoint in the options.

    Raises:
        ProviderError: If the key or the model is missing, or the URL is invalid.
    """
    settings = _settings()
    key = settings.get(options.key, "").strip()
    if not key:
        advice = f"set {options.key} in the environment or in ./.env"
        raise ProviderError(f"no LLM key: {advice}, or use --llm replay or --llm manual")
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise ProviderError(f"{options.key} holds characters that no key has; set it to the key alone")
    if not options.model:
        raise ProviderError("no LLM model: name one with --model")
    url = _checked_url(options.base_url or settings.get("OPENAI_BASE_URL") or OPENAI)
    return OpenAIProvider(options, url, key)
