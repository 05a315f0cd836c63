"""Names in traces cannot control the terminal or the page: they show escapes as text."""

import json
import re
import shutil
import zlib

import program
import pytest
import torch
from browser import clean_pages

from capture import Recorder
from enable.cli import run
from enable.tables import markdown_table, table
from enable.terminal import LAYOUT, printable

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NAME = "\x1b[31mred\u202e\u2066\x00<img src=x onerror=hostile=1>"  # an escape sequence, two bidi controls, NUL, markup
SHOWN = r"\x1b[31mred\u202e\u2066\x00<img src=x onerror=hostile=1>"
FILE = "net\x1b[31m\u202e\u2066"  # as in a trace's directory name, which holds neither NUL nor a slash
FILE_SHOWN = r"net\x1b[31m\u202e\u2066"
OPERATOR = f"aten::relu{NAME}"


def rewritten(path, name, to):
    """Replace a name in a trace's file, with the checksums that end the lines of stored calls."""
    text, old, new = path.read_text(), json.dumps(name), json.dumps(to)
    assert old in text
    if path.suffix == ".jsonl":
        bodies = [line.rpartition(" ")[0].replace(old, new) for line in text.splitlines()]
        text = "".join(f"{body} {zlib.crc32(body.encode()):08x}\n" for body in bodies)
    else:
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with one trace whose file, model, device, modules, phases and an operator have hostile names."""
    home = tmp_path_factory.mktemp("hostile")
    trace = home / "w" / "traces" / f"{FILE}.trace"
    trace.parent.mkdir(parents=True)
    model = torch.nn.Module()
    model.add_module(NAME, inner := torch.nn.Sequential(torch.nn.ReLU()))
    with Recorder(trace, model=model, info={"model": NAME, "device": NAME}) as recorder:
        with recorder.phase(NAME):
            inner(torch.linspace(-1, 1, 600).view(20, 30)).neg()
        recorder.step()
    for file in ("calls-00000.jsonl", "signatures.json"):
        rewritten(trace / file, "aten::relu", OPERATOR)
    manifest = json.loads((trace / "manifest.json").read_text())
    manifest["files"] = {name: (trace / name).stat().st_size for name in manifest["files"]}
    (trace / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(trace, trace.with_name("other.trace"))
    return home


def enable(workspace, *words):
    return program.enable("--workspace", str(workspace / "w"), *map(str, words), cwd=workspace)


@pytest.mark.parametrize(
    "words, shown",
    [
        (["trace", "list"], [FILE_SHOWN, SHOWN]),
        (["trace", "show", FILE], [rf"aten::relu{SHOWN}", SHOWN, FILE_SHOWN]),
        (["trace", "show", FILE, "--by", "module"], [SHOWN]),
        (["trace", "show", FILE, "--by", "phase"], [SHOWN]),
        (["trace", "show", FILE, "--histogram"], [rf"aten::relu{SHOWN}"]),
        (["trace", "show", FILE, "--op", OPERATOR.replace("\0", "")], []),
        (["trace", "show", FILE, "--op", "aten::neg"], [SHOWN]),
        (["trace", "show", f"no\u202e{FILE}"], [r"no\u202e"]),
        (["coverage", FILE], [rf"aten::relu{SHOWN}", FILE_SHOWN]),
        (["coverage", FILE, "--missing"], [rf"aten::relu{SHOWN}", FILE_SHOWN]),
        (["coverage", FILE, "other"], [rf"aten::relu{SHOWN}", FILE_SHOWN]),
        (["trace", "diff", FILE, "other"], [FILE_SHOWN]),
        (["report", FILE, "--out", f"{FILE}.html"], [FILE_SHOWN]),
    ],
)
def test_the_terminal_gets_no_control_characters(workspace, words, shown):
    result = enable(workspace, *words)
    output = result.stdout + result.stderr
    assert output and not CONTROL.search(output), repr(CONTROL.search(output))
    assert "Traceback" not in output
    for text in shown:
        assert text in output


def test_the_page_gets_no_control_characters(workspace):
    assert run(["--workspace", str(workspace / "w"), "report", FILE, "--out", str(workspace / "page.html")]) == 0
    text = (workspace / "page.html").read_text()
    data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    assert data["headlines"][0]["text"].startswith(f"{FILE_SHOWN} ({SHOWN}) on sim: ")
    assert rf"aten::relu{SHOWN}" in {row["overload"] for row in data["overloads"]}

    def texts(value):
        if isinstance(value, dict):
            return [t for key, item in value.items() for t in (key, *texts(item))]
        return [t for item in value for t in texts(item)] if isinstance(value, list) else [str(value)]

    assert not [t for t in texts(data) if CONTROL.search(t)]
    body = text.partition("<body>")[2].partition('<script type="application/json"')[0]
    assert not CONTROL.search(body) and "<img" not in body


def test_the_page_shows_escapes_in_chromium(browser, workspace):
    page = workspace / "shown.html"
    assert run(["--workspace", str(workspace / "w"), "report", FILE, "--out", str(page)]) == 0
    with clean_pages(browser, viewport={"width": 400, "height": 800}) as (opened, _):
        shown = opened(page.as_uri())
        assert shown.locator("#headlines .headline").first.inner_text().startswith(f"{FILE_SHOWN} ({SHOWN}) on sim: ")
        for tab in shown.locator("#tabs button").all():
            tab.click()
            texts = "".join(shown.locator("body").all_text_contents()).partition('{"format"')[0]
            assert SHOWN in texts and not CONTROL.search(texts), tab.inner_text()
            assert shown.evaluate("document.documentElement.scrollWidth") <= 400, tab.inner_text()
        shown.get_by_role("tab", name="Overloads").click()
        shown.locator("#overloads .tabulator-row", has_text="red").first.click()
        assert shown.locator("#drawer-title").inner_text() == f"aten::relu{SHOWN}"
        assert not CONTROL.search(shown.locator("#drawer").inner_text())
        assert shown.evaluate("window.hostile") is None and shown.locator("img").count() == 0


def test_names_in_json_are_the_names_themselves(workspace):
    result = enable(workspace, "trace", "list", "--json")
    assert not CONTROL.search(result.stdout)
    assert json.loads(result.stdout)["traces"][0]["model"] == NAME


def test_printable():
    assert printable(NAME) == SHOWN
    assert printable("a\r\n\tb\u2028\x7f\x85\u200f\u2069") == r"a\r\n\tb\u2028\x7f\x85\u200f\u2069"
    assert printable("a\n\tb\r", LAYOUT) == "a\n\tb\\r"
    assert printable("aten::mm, é, 矩阵, 100 %") == "aten::mm, é, 矩阵, 100 %"


def test_tables_escape_heads_and_cells():
    for made in (table, markdown_table):
        text = made([{f"a{NAME}": f"x\n{NAME}", "other": f"y\n{NAME}"}])
        assert not CONTROL.search(text) and text.count(SHOWN) == 3 and r"x\n" in text and r"y\n" in text
