"""Any OpenAI-compatible endpoint: OPENAI_BASE_URL, OPENAI_API_KEY and a model's name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from generate.llm import Answer, ContextOverflow, Options, ProviderError, Request

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion

TIMEOUT_S = 600.0  # a reasoning model may think for minutes
RETRIES = 4  # by the client, with backoff: 408, 409, 429, 5xx, lost connections


class OpenAIProvider:
    """Chat completions. The key stays in the client: no message of ours holds it."""

    def __init__(self, model: str, base_url: str | None, key: str) -> None:
        from openai import OpenAI  # deferred: half a second

        self.name = f"openai {model}"
        self._model, self._key = model, key
        self._client: OpenAI = OpenAI(api_key=key, base_url=base_url, timeout=TIMEOUT_S, max_retries=RETRIES)

    def complete(self, request: Request) -> Answer:
        """Raises ProviderError with the cause in one line, ContextOverflow if the endpoint says so."""
        import openai

        try:
            completion = self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": m.role, "content": m.content} for m in request.messages],  # type: ignore[misc]
                temperature=request.temperature,
            )
            return _answer(completion)
        except openai.APIStatusError as error:
            if _is_overflow(error):
                raise ContextOverflow from None
            raise ProviderError(self._status(error)) from None
        except openai.APITimeoutError:
            raise ProviderError(f"{self._where()}: no answer within {TIMEOUT_S:.0f} s; try again later") from None
        except openai.APIConnectionError as error:
            cause = self._clean(str(error.__cause__ or error))
            raise ProviderError(f"{self._where()}: cannot connect ({cause}); check OPENAI_BASE_URL") from None
        except (openai.OpenAIError, ValueError, AttributeError, TypeError) as error:
            raise ProviderError(f"{self._where()}: malformed answer ({self._clean(str(error))})") from None

    def _where(self) -> str:
        return f"LLM endpoint {self._client.base_url}"

    def _status(self, error: Any) -> str:
        hints = {
            401: "the key was refused; set OPENAI_API_KEY to a valid one",
            403: "the key may not use this model; choose another with --model",
            404: f"no model {self._model!r} here; choose another with --model",
            429: "too many requests or no quota; try again later",
        }
        message = error.body.get("message") if isinstance(error.body, dict) else None
        said = "" if error.status_code == 401 else f" ({self._clean(str(message or error.message))})"
        return f"{self._where()}: HTTP {error.status_code}: {hints.get(error.status_code, 'the request failed')}{said}"

    def _clean(self, text: str) -> str:
        """One short line without the key."""
        return " ".join(text.replace(self._key, "***").split())[:300]


def _answer(completion: ChatCompletion) -> Answer:
    """Raises AttributeError, TypeError or ValueError where the endpoint's JSON is no chat completion."""
    if not completion.choices:
        raise ValueError("it has no choices")
    text = completion.choices[0].message.content or ""
    if not isinstance(text, str):
        raise TypeError("its content is no text")
    usage = completion.usage
    if usage is None:
        return Answer(text)
    return Answer(text, int(usage.prompt_tokens), int(usage.completion_tokens))


def _is_overflow(error: Any) -> bool:
    code = error.body.get("code") if isinstance(error.body, dict) else None
    return error.status_code in (400, 413) and (code == "context_length_exceeded" or "context length" in error.message)


def provider(options: Options) -> OpenAIProvider:
    """Raises ProviderError without a key or a model."""
    key = os.environ.get("OPENAI_API_KEY", "")
    if not key:
        raise ProviderError("no LLM key: set OPENAI_API_KEY, or use --llm replay or --llm manual")
    if not options.model:
        raise ProviderError("no LLM model: name one with --model")
    return OpenAIProvider(options.model, options.base_url or os.environ.get("OPENAI_BASE_URL"), key)
