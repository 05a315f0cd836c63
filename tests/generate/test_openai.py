"""The openai provider through the real client, against an endpoint on loopback that behaves and misbehaves."""

from __future__ import annotations

import socket
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from generate.llm import Answer, ContextOverflow, Message, Options, ProviderError, Request, load_provider
from generate.llm.retry import retry_after
from traces import UserError

REQUEST = Request((Message("system", "rules"), Message("user", "write gelu")), 1.0, "generate", 1, Path("unused"))
DONE = b"data: [DONE]\n\n"


def complete(model="m", **options):
    return load_provider("openai", Options(model=model, **{"backoff": 0.001, **options})).complete(REQUEST)


def test_an_answer(endpoint):
    endpoint.replies = ["hello"]
    assert complete("some-model") == Answer("hello", 1000, 200)
    (request,) = endpoint.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["model"] == "some-model"
    assert request["temperature"] == 1.0
    assert request["messages"] == [{"role": "system", "content": "rules"}, {"role": "user", "content": "write gelu"}]
    assert request["authorization"] == "Bearer sk-very-secret"
    assert (request["stream"], request["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(endpoint, field):
    thought = [endpoint.delta(**{field: part}) for part in ("it is ", "erf")]
    endpoint.replies = [[*thought, *endpoint.streamed("hello")]]
    assert complete() == Answer("hello", 1000, 200, "it is erf")
    endpoint.replies = [{"choices": [{"message": {field: "it is erf", "content": "hello"}}]}]
    assert complete() == Answer("hello", 1000, 200, "it is erf")


def test_a_refusal_of_the_model_is_its_answer(endpoint):
    endpoint.replies = [[endpoint.delta(refusal="I cannot."), endpoint.delta("stop"), DONE]]
    assert complete() == Answer("I cannot.")


def test_an_answer_cut_at_the_limit_of_tokens(endpoint):
    endpoint.replies = [endpoint.streamed("hel", finish="length")]
    assert complete() == Answer("hel", 1000, 200, cut=True)


def test_comments_and_other_choices_in_a_stream_are_passed_over(endpoint):
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]}
    endpoint.replies = [
        [b": ping\n\n", other, endpoint.delta(content="hello"), {"choices": None}, endpoint.delta("stop")]
    ]
    assert complete() == Answer("hello")


@pytest.mark.parametrize(
    ("refusals", "asked"),
    [
        ([(400, {"message": "Unrecognized request argument supplied: stream_options"})], [True]),
        ([(422, {"detail": "stream_options"}), (400, {"message": "streaming is not supported"})], [True, False]),
        ([(501, {"message": "stream"})] * 2, [True, False]),
    ],
)
def test_an_endpoint_that_refuses_to_stream_is_asked_otherwise(endpoint, refusals, asked):
    endpoint.replies = [*refusals, "hello", "again"]
    model = load_provider("openai", Options(model="m"))
    assert model.complete(REQUEST).text == "hello"
    assert [r.get("stream", False) for r in endpoint.requests] == [True, *asked]
    assert all("stream_options" not in r for r in endpoint.requests[1:])
    assert model.complete(REQUEST).text == "again"
    assert len(endpoint.requests) == len(refusals) + 2, "what it refuses is not asked for again"


def test_an_endpoint_that_does_not_stream_though_asked_to(endpoint):
    endpoint.replies = [{"choices": [{"message": {"content": "hello"}, "finish_reason": "length"}]}]
    assert complete() == Answer("hello", 1000, 200, cut=True)


def test_base_url_of_the_options_wins(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    endpoint.replies = ["hello"]
    assert complete(base_url=endpoint.url).text == "hello"


@pytest.mark.parametrize("failure", [500, 503, 429, 408, 409])
def test_passing_failures_are_retried(endpoint, failure):
    endpoint.replies = [failure, failure, "hello"]
    assert complete().text == "hello"
    assert len(endpoint.requests) == 3


def test_what_breaks_in_the_middle_of_an_answer_is_retried(endpoint):
    begun = endpoint.delta(content="hel")
    broken = [
        [begun, None],
        [begun],
        [begun, {"error": {"message": "overloaded", "code": 503}}],
        [begun, {"error": {"message": "engine died", "type": "server_error"}}],
    ]
    endpoint.replies = [*broken, "hello"]
    assert complete() == Answer("hello", 1000, 200)
    assert len(endpoint.requests) == 5


def test_an_endpoint_that_hangs(endpoint):
    def slowly():
        time.sleep(0.5)
        return "late"

    endpoint.replies = [slowly, slowly]
    with pytest.raises(ProviderError, match=r"no answer within 0.1 s; try again later; tried 2 times$"):
        complete(timeout=0.1, retries=1)


def test_the_wait_that_the_endpoint_asks_for_is_kept(endpoint):
    endpoint.replies = [(429, {"message": "slow"}, {"retry-after": "0.3"}), "hello"]
    began = time.monotonic()
    assert complete().text == "hello"
    assert time.monotonic() - began >= 0.3


def test_a_wait_without_end_is_not_kept(endpoint):
    endpoint.replies = [(429, {"message": "slow"}, {"retry-after": "3600"})]
    with pytest.raises(ProviderError, match=r"too many requests .*; the endpoint asks to wait for 3600 s$"):
        complete()


def test_waits_by_header():
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after": "7", "retry-after-ms": "250"}) == 0.25
    assert 50 < (retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) or 0) <= 60
    assert retry_after({"retry-after": formatdate(time.time() - 60, usegmt=True)}) == 0
    assert [retry_after({"retry-after": bad}) for bad in ("", "-1", "nan", "soon", "Mon, 99")] == [None] * 5
    assert retry_after({}) is None


def test_waits_grow_and_differ(endpoint, monkeypatch):
    waits = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waits.append)
    endpoint.replies = [(500, {}, {"x": "y"})] * 9 + ["hello"]
    assert complete(backoff=0.5, retries=9).text == "hello"
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits[:6]))
    assert max(waits) <= 30


BROKEN = {
    "server error": ([500] * 5, "HTTP 500: the request failed (status 500 on purpose); tried 5 times"),
    "rate limit": ([429] * 5, "HTTP 429: too many requests or no quota"),
    "no quota": ([(429, {"message": "x", "code": "insufficient_quota"})], "HTTP 429: too many requests or no quota"),
    "bad key": ([401], "HTTP 401: the key was refused; set OPENAI_API_KEY"),
    "no such model": ([404], "HTTP 404: no model 'm' here; choose another with --model"),
    "an upstream": ([(404, {"message": "no upstream has it"})], "HTTP 404: no model 'm' here"),
    "bad request": ([400], "HTTP 400: the request failed"),
    "key in the message": ([(400, {"message": "key sk-very-secret is odd"})], "key *** is odd"),
    "part of the key": ([(403, {"message": "key sk-very-s***et is odd"})], "key *** is odd"),
    "an error of text": (
        [(400, "no such thing")],
        "HTTP 400: the request failed (no such thing)",
    ),
    "not JSON": ([b"<html>gateway</html>"], "malformed answer (it is no JSON: "),
    "not a completion": ([b'{"hello": 1}'], "malformed answer (it has no choices)"),
    "a list": ([b"[]"], "malformed answer (it is no object)"),
    "a string": ([b'"text"'], "malformed answer (it is no object)"),
    "nested": ([b"[" * 100_000], "malformed answer (it is no JSON: "),
    "no choices": ([{"choices": []}], "malformed answer (it has no choices)"),
    "no message": ([{"choices": [{"index": 0}]}], "malformed answer (a choice has no message)"),
    "a choice of text": ([{"choices": ["text"]}], "malformed answer (its choices are no objects)"),
    "choices of text": ([{"choices": "text"}], "malformed answer (its choices are no objects)"),
    "content of parts": ([{"choices": [{"message": {"content": ["x"]}}]}], "malformed answer (its content is no text)"),
    "odd usage": (
        [{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}],
        "malformed answer (its usage counts 'many' prompt tokens)",
    ),
    "an error with status 200": (
        [{"error": {"message": "no credit", "code": 402}}],
        "answer: the request failed (no cr",
    ),
    "not JSON in a stream": ([[b"data: {oops\n\n"]], "malformed answer"),
    "an error in a stream": ([[{"error": {"message": "bad", "code": 400}}]], "in the middle of an answer: the request"),
    "always cut": ([[None]] * 5, "the connection was lost"),
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
    assert "sk-very" not in message
    assert not endpoint.replies, "exactly as many requests as meant"


def test_an_endpoint_that_is_down(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
        with pytest.raises(ProviderError, match=r"cannot connect .*; check OPENAI_BASE_URL; tried 3 times$"):
            complete(retries=2)


OVERFLOWS = {
    "openai": (400, {"message": "too long", "code": "context_length_exceeded"}),
    "openai, in words": (400, {"message": "This model's maximum context length is 8192 tokens. However, you ..."}),
    "openai, o-series": (400, {"message": "Your input exceeds the context window of this model."}),
    "vllm": (400, {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192."}),
    "vllm, before": (400, {"message": "The prompt (total length 9) is too long to fit into the model", "code": 400}),
    "llama.cpp": (
        400,
        {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"},
    ),
    "llama.cpp, before": (500, {"code": 500, "message": "input is too large to process. increase the batch size"}),
    "ollama": (400, {"message": "the input length exceeds the context length", "type": "invalid_request_error"}),
    "ollama, runner": (400, {"message": "prompt too long; exceeded max context length by 12 tokens"}),
    "sglang": (400, {"message": "The input (9000 tokens) is longer than the model's context length (8192 tokens)."}),
    "tgi": (422, {"message": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"}),
    "anthropic": (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}),
    "gemini": (400, {"message": "The input token count (1200000) exceeds the maximum number of tokens allowed"}),
    "mistral": (
        400,
        {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"},
    ),
    "in a stream": [{"error": {"message": "maximum context length is 8192 tokens", "code": 400}}],
    "with status 200": {"error": {"message": "This endpoint's maximum context length is 8192 tokens", "code": 400}},
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_conversation_that_is_too_long(endpoint, name):
    endpoint.replies = [OVERFLOWS[name]]
    with pytest.raises(ContextOverflow):
        complete()


@pytest.mark.parametrize(
    "message",
    [
        "temperature is too large",
        "Request too large for gpt on tokens per min (TPM)",
        "messages[1].content is required",
        "n must be <= 1",
    ],
)
def test_other_refusals_are_no_overflow(endpoint, message):
    endpoint.replies = [(400, {"message": message})]
    with pytest.raises(ProviderError, match="HTTP 400"):
        complete()


def test_an_empty_answer_and_an_answer_without_usage(endpoint):
    endpoint.replies = [{"choices": [{"message": {"content": None}}], "usage": None}]
    assert complete() == Answer("", 0, 0)
    endpoint.replies = [endpoint.streamed("", usage=False)]
    assert complete() == Answer("", 0, 0)


def test_an_answer_without_end_is_not_read_to_it(endpoint):
    endpoint.replies = [[endpoint.delta(content="x" * 1_000_000)] * 50]
    answer = complete()
    assert answer.cut
    assert 4_000_000 < len(answer.text) < 6_000_000
    endpoint.replies = [b'"' + b"x" * 40_000_000 + b'"']
    with pytest.raises(ProviderError, match="it is longer than 32000000 bytes"):
        complete()


def test_no_key(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    told = r"no LLM key: set OPENAI_API_KEY in the environment or in ./.env, or use --llm replay or --llm manual"
    with pytest.raises(ProviderError, match=told):
        complete()


def test_key_and_endpoint_of_a_dotenv_file(server, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".env").write_text(f"# mine\nexport OPENAI_API_KEY='sk-$in-file'\nOPENAI_BASE_URL={server.url}\n")
    server.replies = ["hello", "hello"]
    assert complete().text == "hello"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    assert complete().text == "hello"
    keys = [r["authorization"] for r in server.requests]
    assert keys == ["Bearer sk-$in-file", "Bearer sk-of-the-environment"]


def test_a_role_may_have_a_key_of_its_own(endpoint, monkeypatch):
    monkeypatch.setenv("SUMMARY_KEY", "sk-other")
    endpoint.replies = ["hello", 401]
    complete(key="SUMMARY_KEY")
    assert endpoint.requests[0]["authorization"] == "Bearer sk-other"
    with pytest.raises(ProviderError, match="set SUMMARY_KEY to a valid one"):
        complete(key="SUMMARY_KEY")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_dotenv_file_that_cannot_be_read(endpoint, monkeypatch, tmp_path, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(content) if content else (tmp_path / ".env").mkdir()
    if content is None:
        endpoint.replies = ["hello"]
        assert complete().text == "hello", "a directory of that name is no such file"
        return
    with pytest.raises(ProviderError, match=r"^.env: cannot be read \(not a text in UTF-8\)"):
        complete()


@pytest.mark.parametrize("key", ["sk-very secret", "sk-very-sécret", "sk-very\nsecret"])
def test_an_impossible_key_is_refused_and_not_told(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ProviderError, match="^OPENAI_API_KEY holds characters that no key has") as error:
        complete()
    assert "very" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://host:port/v1",
        "http://[::1/v1",
        "http://a b/v1",
        "/v1",
        "x",
    ],
)
def test_no_url(endpoint, url):
    with pytest.raises(ProviderError) as error:
        complete(base_url=url)
    example = "give one such as http://127.0.0.1:8000/v1 with --base-url"
    assert str(error.value) == f"{url!r} is no URL of an LLM endpoint; {example}"


def test_the_password_of_a_url_is_not_told(endpoint):
    with pytest.raises(ProviderError, match=r"^'ftp://\*\*\*@host/v1' is no URL"):
        complete(base_url="ftp://me:secret@host/v1?key=secret")
    endpoint.replies = [(400, {"message": "no secret here"})]
    with pytest.raises(ProviderError) as error:
        complete(base_url=endpoint.url.replace("127", "me:secret@127"))
    assert "secret" not in str(error.value)
    assert endpoint.url in str(error.value)


def test_no_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with pytest.raises(ProviderError, match="name one with --model"):
        complete(None)


def test_an_unknown_provider_lists_the_choices():
    with pytest.raises(UserError, match=r"unknown LLM provider 'gpt'; choose from manual, openai, replay, turns$"):
        load_provider("gpt")
    with pytest.raises(UserError, match="unknown LLM provider 'retry'"):
        load_provider("retry")
