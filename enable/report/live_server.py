"""Serve the live page on this machine's loopback address.

Whoever has the URL may read the page, and nobody else: the URL contains a random token, which is new for each server.
A request needs the token and a Host header that names this machine, so that a name of another site that resolves to
127.0.0.1 (DNS rebinding) does not help. No header lets another site read an answer. Only GET and HEAD are answered.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from enable.report.live import LiveReport
from traces import UserError
from traces.packaging import qualified
from traces.program import program_name

LOOPBACK = "127.0.0.1"
_HOSTS = (LOOPBACK, "localhost")  # with any port, because `ssh -L` may forward another one
_TOKEN_BYTES = 32
_ASSETS = Path(__file__).parent / "assets"
_SCRIPT, _STYLE, _PAGE, _JSON, _TEXT = "text/javascript", "text/css", "text/html", "application/json", "text/plain"
_FILES = {
    **dict.fromkeys(("tabulator.js", "elements.js", "live.js"), _SCRIPT),
    **dict.fromkeys(("tabulator.css", "report.css", "live.css"), _STYLE),
}
_READING = {"Allow": "GET, HEAD"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LiveServer(ThreadingHTTPServer):
    """A server for one live report; `url` is the page's address."""

    daemon_threads = True  # an open request does not keep the process alive

    def __init__(self, live: LiveReport, workspace: Path, port: int) -> None:
        """Listen on the port; 0 takes a free one.

        Raises:
            OSError: The port cannot be used.
        """
        super().__init__((LOOPBACK, port), _Handler)
        self.live = live
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        environment = Environment(loader=PackageLoader(qualified("enable")), autoescape=True, undefined=StrictUndefined)
        command = f"{program_name()} report --serve"  # that begins again after the server has ended
        self.page = environment.get_template("live.html.j2").render(workspace=workspace, command=command)

    @property
    def url(self) -> str:
        """Return the page's address, which contains the token."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: LiveServer
    server_version, sys_version = "enablekit", ""
    timeout = 10  # seconds; a client that sends nothing does not keep a thread

    def do_GET(self) -> None:  # noqa: N802 - the base class looks for this name
        """Answer with the page, the state, a dialog or a file of the page."""
        self._checked(self._get)

    do_HEAD = do_GET

    def do_POST(self) -> None:  # noqa: N802
        """Refuse to write."""
        self._checked(
            lambda: self._send(HTTPStatus.METHOD_NOT_ALLOWED, "this page is for reading only\n", headers=_READING)
        )

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that the base class cannot read, or whose method has no function here."""
        self._send(HTTPStatus(code), f"{message or HTTPStatus(code).phrase}\n")

    def _checked(self, answer: Callable[[], None]) -> None:
        """Call `answer` if the request has the token and names this machine as its host."""
        with suppress(ConnectionError, TimeoutError):  # a browser may close a request at any time
            hosts = self.headers.get_all("Host", [])
            token = self.path.partition("?")[0][1:].partition("/")[0]
            has_token = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
            if has_token and len(hosts) == 1 and _is_this_machine(hosts[0]):
                answer()
            else:
                self._send(HTTPStatus.FORBIDDEN, f"open the URL that {program_name()} report --serve printed\n")

    def _get(self) -> None:
        """Send the content at the path below the token."""
        url = urlsplit(self.path)
        name = url.path[1:].partition("/")[2]
        if name in _FILES:
            self._send(HTTPStatus.OK, (_ASSETS / name).read_text(encoding="utf-8"), _FILES[name])
        elif name == "state":
            self._send(HTTPStatus.OK, json.dumps(self.server.live.state()), _JSON)
        elif name == "dialog":
            self._send_dialog(parse_qs(url.query).get("id", [""])[0])
        elif name == "" and url.path.endswith("/"):
            self._send(HTTPStatus.OK, self.server.page, _PAGE)
        elif name == "":
            self._send(
                HTTPStatus.PERMANENT_REDIRECT, "the URL ends with /\n", headers={"Location": f"/{self.server.token}/"}
            )
        else:
            self._send(HTTPStatus.NOT_FOUND, "no such page\n")

    def _send_dialog(self, key: str) -> None:
        """Send the rounds of a dialog run."""
        try:
            dialog = self.server.live.dialog(key)
        except (UserError, OSError) as error:
            self._send(HTTPStatus.NOT_FOUND, f"{error}\n")
            return
        if dialog is None:
            self._send(HTTPStatus.NOT_FOUND, "no such dialog\n")
        else:
            self._send(HTTPStatus.OK, json.dumps(dialog), _JSON)

    def _send(self, status: HTTPStatus, text: str, kind: str = _TEXT, headers: Mapping[str, str] | None = None) -> None:
        """Send a complete answer; for HEAD its headers alone."""
        body = text.encode()
        self.send_response(status)
        for name, value in {**_HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Print nothing; a log would contain the token."""


def _is_this_machine(host: str) -> bool:
    """Return True if a Host header names the loopback address, with or without a port."""
    name, _, port = host.partition(":")
    return name.lower() in _HOSTS and (port.isdecimal() or ":" not in host)


def serve(live: LiveReport, workspace: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted.

    Args:
        live: The report.
        workspace: Directory that the page names.
        port: Port on 127.0.0.1; 0 takes a free one.
        say: Prints a text; called once the server listens, first with the URL.

    Raises:
        UserError: The port cannot be used.
    """
    try:
        server = LiveServer(live, workspace, port)
    except OSError as error:
        raise UserError(
            f"--port {port}: {error.strerror}; name another port, or leave it out for a free one: "
            f"{program_name()} report --serve"
        ) from error
    with server:
        say(f"{server.url}\n  follows {workspace} for readers on this machine who have this URL; Ctrl-C ends it")
        server.serve_forever()
