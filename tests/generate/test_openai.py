"""The openai provider through the real client, against an endpoint on loopback that behaves and misbehaves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from generate.llm import Answer, ContextOverflow, Message, Options, ProviderError, Request, load_provider
from traces import UserError

REQUEST = Request((Message("system", "rules"), Message("user", "write gelu")), 1.0, "generate", 1, Path("unused"))


def complete(model="m"):
    return load_provider("openai", Options(model=model)).complete(REQUEST)


def test_an_answer(endpoint):
    endpoint.replies = ["hello"]
    assert complete("some-model") == Answer("hello", 1000, 200)
    (request,) = endpoint.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["model"] == "some-model"
    assert request["temperature"] == 1.0
    assert request["messages"] == [{"role": "system", "content": "rules"}, {"role": "user", "content": "write gelu"}]
    assert request["authorization"] == "Bearer sk-very-secret"


def test_base_url_of_the_options_wins(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    endpoint.replies = ["hello"]
    assert load_provider("openai", Options(model="m", base_url=endpoint.url)).complete(REQUEST).text == "hello"


@pytest.mark.parametrize("status", [500, 503, 429])
def test_passing_failures_are_retried(endpoint, status):
    endpoint.replies = [status, status, "hello"]
    assert complete().text == "hello"
    assert len(endpoint.requests) == 3


BROKEN = {
    "server error": ([500] * 5, "HTTP 500: the request failed (status 500 on purpose)"),
    "rate limit": ([429] * 5, "HTTP 429: too many requests or no quota"),
    "bad key": ([401], "HTTP 401: the key was refused; set OPENAI_API_KEY"),
    "no such model": ([404], "HTTP 404: no model 'm' here; choose another with --model"),
    "bad request": ([400], "HTTP 400: the request failed"),
    "key in the message": ([(400, {"message": "key sk-very-secret is odd"})], "key *** is odd"),
    "not JSON": ([b"<html>gateway</html>"], "malformed answer"),
    "not a completion": ([b'{"hello": 1}'], "malformed answer"),
    "a list": ([b"[]"], "malformed answer"),
    "a string": ([b'"text"'], "malformed answer"),
    "no choices": ([{"choices": []}], "malformed answer (it has no choices)"),
    "no message": ([{"choices": [{"index": 0}]}], "malformed answer"),
    "a choice of text": ([{"choices": ["text"]}], "malformed answer"),
    "content of parts": ([{"choices": [{"message": {"content": ["x"]}}]}], "malformed answer (its content is no text)"),
    "odd usage": ([{"choices": [{"message": {"content": "x"}}], "usage": {"total": 1}}], "malformed answer"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_failures_are_one_line_that_says_the_cause(endpoint, name):
    endpoint.replies, cause = list(BROKEN[name][0]), BROKEN[name][1]
    with pytest.raises(ProviderError) as error:
        complete()
    message = str(error.value)
    assert cause in message
    assert endpoint.url in message
    assert "\n" not in message
    assert "secret" not in message
    assert not endpoint.replies, "exactly as many requests as meant"


def test_an_endpoint_that_is_down(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        monkeypatch.setattr("generate.llm.openai.RETRIES", 0)
        with pytest.raises(ProviderError, match=r"cannot connect .*; check OPENAI_BASE_URL$"):
            complete()


@pytest.mark.parametrize(
    "error",
    [{"message": "too long", "code": "context_length_exceeded"}, {"message": "maximum context length is 8192 tokens"}],
)
def test_a_conversation_that_is_too_long(endpoint, error):
    endpoint.replies = [(400, error)]
    with pytest.raises(ContextOverflow):
        complete()


def test_an_empty_answer_and_an_answer_without_usage(endpoint):
    endpoint.replies = [{"choices": [{"message": {"content": None}}], "usage": None}]
    assert complete() == Answer("", 0, 0)


def test_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ProviderError, match="no LLM key: set OPENAI_API_KEY, or use --llm replay or --llm manual"):
        complete()


def test_no_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with pytest.raises(ProviderError, match="name one with --model"):
        complete(None)


def test_an_unknown_provider_lists_the_choices():
    with pytest.raises(UserError, match=r"unknown LLM provider 'gpt'; choose one of: manual, openai, replay$"):
        load_provider("gpt")
