"""A chat-completions endpoint on loopback, which behaves and misbehaves as told."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton: kernels run here without a GPU


class ChatServer(ThreadingHTTPServer):
    """Answers the requests with `replies`, in order.

    A str is a completion, a function is called for one, a dict changes fields of a completion, an int is an HTTP
    status, a tuple a status with an error object, bytes are a raw body.
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


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.requests.append({"path": self.path, "authorization": self.headers["authorization"], **body})
            reply = self.server.replies.pop(0)
        reply = reply() if callable(reply) else reply
        if isinstance(reply, int):
            self._send(reply, json.dumps({"error": {"message": f"status {reply} on purpose"}}).encode())
        elif isinstance(reply, tuple):
            self._send(reply[0], json.dumps({"error": reply[1]}).encode())
        elif isinstance(reply, bytes):
            self._send(200, reply)
        else:
            fields = reply if isinstance(reply, dict) else {"choices": [choice(reply)]}
            self._send(200, json.dumps(COMPLETION | fields).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(body)

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


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as chat:
        thread = threading.Thread(target=chat.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield chat
        chat.shutdown()
        thread.join()


@pytest.fixture
def endpoint(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """The server, with the environment pointing to it."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    return server
