"""`enable report --serve`: a real server, real requests, and a real browser that follows real commands.

Most tests serve from this process; those on how the command begins and ends start it.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import torch
from browser import clean_pages

from capture import Recorder
from enable.cli import run
from enable.report.live import LiveReport
from enable.report.live_server import LiveServer
from enable.workspace import Workspace
from traces.program import NAME_VARIABLE

pytestmark = pytest.mark.timeout(600)  # a coverage run and a campaign
ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "enable"
KERNELS = ROOT / "generate" / "kernels" / "pointwise"
HOSTILE = "<img src=x onerror=window.hostile=1>"
RIGHT = f"```python\n{(KERNELS / 'exp.py').read_text()}```\n"
WRONG = RIGHT.replace("tl.exp(x)", "tl.log(x)")
PRICE = (1_000.0, 10_000.0)  # money for a million tokens of prompts and of answers


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A workspace with a trace of OpInfo's exp and one of a net, and a library without exp whose mul is wrong."""
    home = tmp_path_factory.mktemp("live")
    group = home / "library" / "pointwise"
    group.mkdir(parents=True)
    shutil.copy(KERNELS / "reciprocal.py", group)
    text = (KERNELS / "mul.py").read_text()
    assert "return x * y" in text
    (group / "mul.py").write_text(text.replace("return x * y", "return 1.01 * x * y"))
    (home / ".enable" / "traces").mkdir(parents=True)
    with Recorder(home / ".enable" / "traces" / "net.trace") as recorder:
        torch.linspace(1, 2, 600).view(20, 30).reciprocal().mul(2.0).sigmoid()
        recorder.step()
    workspace = ["--workspace", str(home / ".enable")]
    assert run([*workspace, "capture", "opinfo", "--op", "exp", "--dtype", "float32"]) == 0
    price = ", ".join(map(str, PRICE))
    (home / "campaign.toml").write_text(
        f'name = "small"\noperators = ["aten::exp"]\n[model]\nprovider = "openai"\nname = "m"\nprice = [{price}]\n'
    )
    return home


@pytest.fixture
def home(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return tmp_path


def started(home, *arguments, url=None, **options):
    """A process of the program, in a workspace."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "ENABLE_WORKSPACE"))}
    endpoint = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test"} if url else {}
    environment |= {"ENABLE_LIBRARY": "library", **endpoint}
    return subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=home, env=environment, text=True, **options)


@contextmanager
def serving(home, *traces):
    """A server that follows a workspace; yields its URL, and a function that ends it."""
    workspace = Workspace(home / ".enable")
    live = LiveReport(workspace, home / "library", traces, (), ("sim",))
    with LiveServer(live, workspace.root, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def end():
            server.shutdown()
            server.server_close()

        try:
            yield server.url, end
        finally:
            end()
            thread.join()


def request(url, path="", method="GET", hosts=None):
    """The status, headers and body of an answer; `hosts` replace the Host header."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    connection.putrequest(method, parts.path + path, skip_host=hosts is not None)
    for host in hosts or ():
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def state_of(url):
    status, _, body = request(url, "state")
    assert status == 200
    return json.loads(body)


@pytest.fixture(scope="module")
def served(prepared):
    with serving(prepared) as (url, _):
        yield url


# -- who may read ----------------------------------------------------------------------------------------------------


def test_with_its_token_it_can_be_read(served):
    token = urlsplit(served).path.strip("/")
    assert len(token) >= 40
    for path, kind in (("", "text/html"), ("state", "application/json"), ("live.js", "text/javascript")):
        status, headers, body = request(served, path)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8") and body
        assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert token not in body
    status, headers, body = request(served, "", "HEAD")
    assert (status, body) == (200, "") and int(headers["Content-Length"]) > 0
    assert request(served, "nothing")[0] == request(served, "../report.py")[0] == request(served, "report.js")[0] == 404
    assert request(served, f"dialog?id={quote('../../campaign.toml')}")[0] == 404


@pytest.mark.parametrize(
    "change", [lambda t: "", lambda t: t[:-1], lambda t: t + "x", lambda t: "x" + t[1:], str.swapcase]
)
@pytest.mark.parametrize("path", ["/", "/state", "/live.js", ""])
def test_without_its_token_it_cannot(served, change, path):
    parts = urlsplit(served)
    other = parts._replace(path="/" + quote(change(parts.path.strip("/"))) + path).geturl()
    status, headers, body = request(other)
    assert status == 403 and "enable report --serve" in body and "Cache-Control" in headers


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example"],
        ["evil.example:{port}"],
        ["127.0.0.1.evil.example:{port}"],
        ["127.0.0.1:{port}", "evil.example"],
        ["127.0.0.1:{port}@evil.example"],
        ["localhost:"],
        [""],
    ],
)
def test_another_host_is_refused(served, hosts):
    port = urlsplit(served).port
    assert request(served, "state", hosts=[host.format(port=port) for host in hosts])[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:8000"])
def test_this_machine_is_a_host_with_any_port(served, host):
    assert request(served, hosts=[host])[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(served, method):
    status, headers, _ = request(served, "state", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert request(f"http://127.0.0.1:{urlsplit(served).port}/", "state", method)[0] == 403


def test_it_listens_on_loopback_alone(served):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", urlsplit(served).port), timeout=10)


def test_each_server_has_its_own_token(prepared, served):
    with serving(prepared) as (url, _):
        assert urlsplit(url).path != urlsplit(served).path


@pytest.mark.parametrize("method", ["PROPFIND", "get"])
def test_an_unknown_method_gets_the_headers_too(served, method):
    status, headers, body = request(served, "state", method)
    assert status == 501 and body.startswith("Unsupported method")
    of_a_page = request(served, "")[1]
    assert len(of_a_page) > 8 and headers.keys() == of_a_page.keys()
    assert {name for name in headers if headers[name] != of_a_page[name]} <= {"Date", "Content-Type", "Content-Length"}


def test_a_url_without_its_last_slash_leads_to_the_page(served):
    status, headers, _ = request(served.rstrip("/"))
    assert (status, headers["Location"]) == (308, urlsplit(served).path)


# -- how it begins and ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it(prepared, number, status, monkeypatch):
    monkeypatch.setenv(NAME_VARIABLE, "kit")
    process = started(prepared, "report", "--serve", "net", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    timer = threading.Timer(300, process.kill)
    timer.start()
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:") and request(url, "state")[0] == 200
    process.send_signal(number)
    error = process.communicate()[1]
    timer.cancel()
    assert (process.returncode, error) == (status, "kit: ended; to open the page again, run: kit report net --serve\n")


@pytest.mark.parametrize(
    "words, message",
    [
        (["--serve", "--port", "70000"], "--port 70000: name a port from 1 to 65535, or leave it out"),
        (["--serve", "--port", "0"], "--port 0: name a port from 1 to 65535, or leave it out"),
        (["--serve", "--port", "80x"], "--port 80x: name a port from 1 to 65535, or leave it out"),
        (["--port", "8000"], "type: enable report --serve --port 8000"),
        (["--serve", "--json"], "--json: --serve writes no report"),
        (["--serve", "--out", "x.html"], "--out: --serve writes no report"),
        (["--serve", "--since", "x.html"], "--since: --serve writes no report"),
        (["--serve", "nothere"], "no trace 'nothere'"),
        (
            ["--serve", "--campaign", "nothere"],
            "no campaign 'nothere' in .enable (campaigns: none); to follow the whole workspace: enable report --serve",
        ),
        (["--serve", "--platform", "nothere"], "unknown platform 'nothere'"),
        (
            ["--serve", "--workspace", "nothere"],
            "no workspace nothere; name one with --workspace DIR, or begin it: enable",
        ),
    ],
)
def test_bad_input_is_one_line(home, monkeypatch, capsys, words, message):
    monkeypatch.chdir(home)
    monkeypatch.setenv("ENABLE_LIBRARY", "library")
    assert run(["report", *words]) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("enable: ") and error.count("\n") == 1
    assert not (home / "nothere").exists()


@pytest.mark.parametrize("words", [["--serve", "--port", "0"], ["--port", "8000"]])
def test_the_printed_command_begins_with_the_typed_name(home, monkeypatch, capsys, words):
    monkeypatch.chdir(home)
    monkeypatch.setenv(NAME_VARIABLE, "kit")
    assert run(["report", *words]) == 2
    error = capsys.readouterr().err
    assert ": kit report --serve" in error and "enable" not in error


def test_a_port_in_use(home, monkeypatch, capsys):
    monkeypatch.chdir(home)
    monkeypatch.setenv("ENABLE_LIBRARY", "library")
    monkeypatch.setenv(NAME_VARIABLE, "kit")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert run(["report", "--serve", "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kit: --port {port}: Address already in use; name another port")
    assert error.count("\n") == 1 and "kit report --serve" in error


# -- what it shows ---------------------------------------------------------------------------------------------------


def contents(directory):
    return {path: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def model(state, name):
    return next(row for row in state["models"] if row["trace"] == name)


def test_it_agrees_with_coverage_and_writes_nothing(home, monkeypatch, capsys):
    """It is there before the run, and again after it."""
    with serving(home) as (url, _):
        before = model(state_of(url), "net")
        assert (before["cases"], before["judged"], before["failing"]) == (2, 0, 0)
        assert not (home / ".enable" / "verdicts.sqlite").exists()
        process = started(home, "coverage", "net", "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        coverage = json.loads(process.communicate()[0])
        written = contents(home / ".enable")
        after = state_of(url)
        while model(after, "net")["judged"] < 2:
            after = state_of(url)
        net = model(after, "net")
        assert (net["judged"], net["failing"]) == (2, 1)
        assert {key: net[key] for key in ("overloads", "calls")} == {
            key: coverage[key] for key in ("overloads", "calls")
        }
        shown = {
            row["overload"]: (row["state"], row["evidence"]) for row in after["overloads"] if row["trace"] == "net"
        }
        expected = {row["overload"]: (row["state"], row["evidence"]) for row in coverage["rows"]}
        assert shown == {overload: expected[overload] for overload in shown}
        assert (shown["aten::mul.Tensor"], shown["aten::sigmoid"]) == (("WRONG", None), ("no kernel", None))
        assert shown["aten::reciprocal"] == ("PASS", "few cases")
    live = LiveReport(Workspace(home / ".enable"), home / "library", (), (), ("sim",))
    assert json.loads(json.dumps(live.state())) == after
    assert contents(home / ".enable") == written
    assert after["problems"] == []


def test_a_repaired_kernel_is_not_judged_yet(home):
    live = LiveReport(Workspace(home / ".enable"), home / "library", ["net"], (), ("sim",))
    assert run(["--workspace", str(home / ".enable"), "coverage", "net", "--library", str(home / "library")]) == 0
    live._due = 0.0
    assert [model(live.state(), "net")[key] for key in ("judged", "failing")] == [2, 1]
    kernel = home / "library" / "pointwise" / "mul.py"
    kernel.write_text(kernel.read_text().replace("1.01 * ", ""))
    live._due = 0.0
    assert [model(live.state(), "net")[key] for key in ("judged", "failing")] == [1, 0]
    states = {row["overload"]: row["state"] for row in live.state()["overloads"]}
    assert states["aten::mul.Tensor"] == "not run"


def campaign(home, server, **options):
    """A process that runs the campaign."""
    return started(home, "generate", "--config", "campaign.toml", url=server.url, **options)


def test_a_campaign_and_its_cost(home, server):
    """Its journal is torn, as if it were being written, and then damaged."""
    server.replies = [WRONG, RIGHT]
    assert campaign(home, server, stdout=subprocess.DEVNULL).wait(300) == 0
    workspace = Workspace(home / ".enable")
    read = lambda: LiveReport(workspace, home / "library", (), ["small"], ("sim",)).state()  # noqa: E731
    state = read()
    assert state["models"] == [] and state["problems"] == []
    (row,) = state["campaigns"]
    assert [row[key] for key in ("campaign", "total", "ended", "passed", "failing")] == ["small", 1, 1, 1, 0]
    assert [row[key] for key in ("calls", "prompt_tokens", "completion_tokens")] == [2, 2000, 400]
    assert row["money"] == pytest.approx((2000 * PRICE[0] + 400 * PRICE[1]) / 1e6)
    (dialog,) = state["dialogs"]
    expected = {"overload": "aten::exp", "stage": "PASSED", "turn": "-", "latest_outcome": "PASS"}
    assert dialog.items() >= expected.items()
    (journal,) = (home / ".enable" / "campaigns" / "small").rglob("journal.jsonl")
    with open(journal, "ab") as file:
        file.write(b'{"event": "ANSW')
    (torn,) = read()["dialogs"]
    assert {**torn, "size": 0, "changed": 0} == {**dialog, "size": 0, "changed": 0} and torn["size"] > dialog["size"]
    with open(home / ".enable" / "campaigns" / "small" / "results.jsonl", "ab") as file:
        file.write(b'{"overload": "aten::e')
    assert read()["campaigns"] == state["campaigns"]
    journal.write_bytes(b"not a journal\n" + journal.read_bytes())
    damaged = read()
    assert damaged["dialogs"][0]["stage"] == "DAMAGED" and damaged["campaigns"][0]["passed"] == 1


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(browser):
    """A function that opens a URL; at the end there were no errors, and only that server was asked."""
    with clean_pages(browser) as (opened, origins):
        yield opened
    assert len(origins - {"data://"}) == 1


def seen(page, selector, text, timeout=240):
    """Wait until an element contains a text."""
    page.locator(selector, has_text=text).first.wait_for(timeout=1000 * timeout)


def test_the_page_follows_a_coverage_run(home, opened):
    with serving(home, "net") as (url, _):
        page = opened(url)
        seen(page, "#progress", "0 of 2 cases judged, 0 failing")
        seen(page, "#overloads .tabulator-row", "not run")
        assert "none yet" in page.locator("#campaigns").inner_text()
        assert started(home, "coverage", "net", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(300) == 0
        seen(page, "#progress", "2 of 2 cases judged, 1 failing", 30)
        seen(page, "#overloads .tabulator-row", "WRONG", 30)
        passed = page.locator("#overloads .tabulator-row", has_text="aten::reciprocal")
        assert passed.locator("[tabulator-field=evidence]").inner_text() == "few cases"
        assert "1 of 4" in page.locator("#models tr", has_text="net").inner_text()
        page.close()


def test_the_page_follows_a_campaign(home, server, opened):
    """The model's second answer waits until the page has shown the first one and its feedback."""
    go_on = threading.Event()
    server.replies = [f"I try this. {HOSTILE}\n\n{WRONG}", lambda: go_on.wait(300) and RIGHT]
    with serving(home) as (url, _):
        page = opened(url, color_scheme="dark")
        running = campaign(home, server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen(page, "#campaigns tr", "small")
        assert "0 of 1" in page.locator("#campaigns tr", has_text="small").inner_text()
        page.locator("#dialogs .tabulator-row", has_text="aten::exp").first.focus()
        page.keyboard.press("Enter")
        seen(page, "#dialog-title", "aten::exp, small, run-001")
        seen(page, "#turns .turn", "feedback")
        roles = page.locator("#turns .turn > strong").all_inner_texts()
        assert roles == ["system", "prompt", "answer 1", "feedback"]
        assert HOSTILE in page.locator("#turns").inner_text() and page.evaluate("window.hostile") is None
        assert page.locator("img").count() == 0
        row = page.locator("#dialogs .tabulator-row").first.inner_text()
        assert "running" in row and "GENERATE" in row and "1000" in row
        page.locator("#turns summary").first.click()  # stays open when the next turn comes
        go_on.set()
        seen(page, "#turns .turn", "answer 2")
        seen(page, "#progress", "1 of 1 operators ended, 0 failing")
        assert running.wait(60) == 0
        seen(page, "#dialogs .tabulator-row", "PASSED", 30)
        assert page.locator("#turns details[open]").count() == 1
        seen(page, "#campaigns tr", "6.0000", 30)  # 2000 tokens of prompts and 400 of answers
        assert page.locator("#turns .added").count() > 0
        page.close()  # it would report that the server is gone


def test_the_page_on_a_phone(served, opened):
    page = opened(served, is_mobile=True, viewport={"width": 390, "height": 800})
    seen(page, "#overloads", "not run")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#overloads").evaluate("e => e.style.maxHeight") == "60vh", "as in a written report"
    assert page.locator("#overloads .tabulator-frozen").count() == 0, "a frozen name covers all other columns"
    page.close()


def test_the_page_says_when_the_server_has_ended(home, browser):
    page = browser.new_page()
    with serving(home) as (url, end):
        page.goto(url)
        seen(page, "#models", "net")
        end()
        seen(page, "#status.ended", "enable report --serve", 30)
        assert "net" in page.locator("#models").inner_text()
    page.close()
