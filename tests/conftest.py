"""What all tests share: compiled kernels, and a chat-completions endpoint on loopback, which behaves and
misbehaves as told."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser  # a fixture

from enable.options import CACHE_VARIABLE
from traces.program import NAME_VARIABLE


def pytest_configure(config: pytest.Config) -> None:
    """Kernels run in this process without a GPU, but where a GPU's tests are asked for. Triton looks when imported."""
    gc.disable()  # of what is imported and collected nothing is garbage
    if config.option.markexpr.strip() != "gpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    if "XDG_CONFIG_HOME" not in os.environ:  # the key that signs verdicts is not the user's
        home = tempfile.TemporaryDirectory(prefix="enable-key-")
        config.add_cleanup(home.cleanup)
        os.environ["XDG_CONFIG_HOME"] = home.name
    os.environ[NAME_VARIABLE] = "enable"  # as with the shell function, by which the pages name commands
    if CACHE_VARIABLE not in os.environ:  # those that start tests share it with those who run them
        shared = tempfile.TemporaryDirectory(prefix="enable-tests-")
        config.add_cleanup(shared.cleanup)
        os.environ[CACHE_VARIABLE] = shared.name
        config.add_cleanup(lambda: os.environ.pop(CACHE_VARIABLE))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where a GPU's tests are asked for, files without such are not imported: some install `sim` as they are."""
    asked = config.option.markexpr.strip() == "gpu" and collection_path.name.startswith("test_")
    return True if asked and collection_path.is_file() and "mark.gpu" not in collection_path.read_text() else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Autograd looks for devices in the first backward of a process; with `sim` there it knows no GPU."""
    gc.freeze()  # a full collection of what is imported and collected takes a second, and finds nothing
    gc.set_threshold(50_000, 20, 100)
    gc.enable()
    if any(item.get_closest_marker("gpu") is None for item in session.items):
        from capture import sim

        sim.install()


class ChatServer(ThreadingHTTPServer):
    """Answers the requests with `replies`, in order.

    A str is a completion, streamed if that is asked for; a function is called for one; a dict changes fields of a
    completion; an int is an HTTP status; a tuple a status with an error object and perhaps headers; bytes are a raw
    body; a list is a stream of events: objects, raw bytes, and None where the connection is cut.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @staticmethod
    def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
        """One chunk of a streamed answer; finish: why it ends."""
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}

    @staticmethod
    def streamed(text: str, usage: bool = True, finish: str = "stop") -> list[Any]:
        """The events of an answer, in pieces."""
        pieces = [text[i : i + 4096] for i in range(0, len(text), 4096)]
        counted = [{"choices": [], "usage": COMPLETION["usage"]}] if usage else []
        first, last = ChatServer.delta(role="assistant", content=""), ChatServer.delta(finish)
        return [first, *(ChatServer.delta(content=p) for p in pieces), last, *counted, b"data: [DONE]\n\n"]


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        with suppress(ConnectionError):  # a client may hang up when it has read enough
            self._answer()

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.requests.append({"path": self.path, "authorization": self.headers["authorization"], **body})
            reply = self.server.replies.pop(0)
        reply = reply() if callable(reply) else reply
        if isinstance(reply, int):
            self._send(reply, json.dumps({"error": {"message": f"status {reply} on purpose"}}).encode())
        elif isinstance(reply, tuple):
            status, error, headers = (*reply, {})[:3]
            self._send(status, json.dumps({"error": error}).encode(), headers)
        elif isinstance(reply, list):
            self._stream(reply)
        elif isinstance(reply, str) and body.get("stream"):
            self._stream(ChatServer.streamed(reply, usage="stream_options" in body))
        elif isinstance(reply, bytes):
            self._send(200, reply)
        else:
            fields = reply if isinstance(reply, dict) else {"choices": [choice(reply)]}
            self._send(200, json.dumps(COMPLETION | fields).encode())

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in (headers or {"retry-after-ms": "1"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: list[Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            if event is None:
                return
            data = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: Any) -> None:
        """Quiet."""


COMPLETION: dict[str, Any] = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200},
}


def choice(content: str) -> dict[str, Any]:
    return {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}


@contextmanager
def _started() -> Iterator[ChatServer]:
    with ChatServer() as chat:
        thread = threading.Thread(target=chat.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield chat
        chat.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with _started() as chat:
        yield chat


@pytest.fixture(scope="module")
def module_server() -> Iterator[ChatServer]:
    """For what a module prepares once."""
    with _started() as chat:
        yield chat


@pytest.fixture
def endpoint(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """The server, with the environment pointing to it."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    return server


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A judge on `sim`, for the tests of a module."""
    from shared import compiled, judging

    with judging(tmp_path_factory.mktemp("judge") / "verdicts.sqlite", cache=compiled()) as judge:
        yield judge
