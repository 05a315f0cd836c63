"""What a terminal shows, and what a pipe or a log gets instead."""

import re
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from terminals import on_terminal, plain

from enable import progress
from enable.cli import run
from enable.cover.session import judging
from enable.tables import table

KERNEL = Path(__file__).parents[1] / "verify" / "corpus" / "honest" / "neg_zero_size_and_scalar.py"
ROWS = [
    {"overload": "aten::native_layer_norm", "calls": 12, "outcome": "PASS", "detail": "x" * 90},
    {"overload": "aten::mm", "calls": 1, "outcome": "WRONG", "detail": "1 of 2 cases"},
]


@pytest.fixture
def terminal():
    return on_terminal


@pytest.fixture
def quick(monkeypatch):
    """What is told after seconds is told at once."""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.02)
    monkeypatch.setattr(progress, "LOGGED", 0.1)


def test_a_table_fits_the_terminal_and_is_coloured(terminal, monkeypatch):
    with terminal():
        lines = table(ROWS).split("\n")
        monkeypatch.setenv("NO_COLOR", "1")
        assert table(ROWS).split("\n") == [plain(line) for line in lines]
    assert 55 < max(len(plain(line)) for line in lines) <= 60
    assert "\x1b[32mPASS\x1b[0m" in lines[1] and "\x1b[31mWRONG\x1b[0m" in lines[-1] and "\x1b" not in lines[0]
    assert "".join(plain(line)[-20:].strip() for line in lines[1:-1]).count("x") == 90  # wrapped, not cut


def test_what_identifies_a_row_is_never_cut(terminal):
    name = "aten::" + "a" * 60
    with terminal():
        lines = table([{"overload": name, "detail": "x" * 90}]).split("\n")
    assert "".join(line.split("  x")[0].strip() for line in lines[1:]) == name  # wrapped


def test_a_table_in_a_pipe_is_whole_and_plain(capsys):
    first = table(ROWS).split("\n")[1]
    assert first.endswith("x" * 90) and "\x1b" not in first


def test_a_line_is_redrawn_and_taken_away(terminal, quick):
    with terminal() as shown, progress.show_progress("coverage cnn", 3) as work:
        work.step("aten::mm")
        with progress.show_progress("reading"):
            time.sleep(0.3)
    assert "\rcoverage cnn  1 of 3  aten::mm  0:00, about 0:0" in shown.printed and "; read" in shown.printed
    assert shown.printed.endswith("\r\x1b[K") and "\n" not in shown.printed


def test_what_is_said_meanwhile_stands_on_a_line_of_its_own(terminal, quick):
    with terminal() as shown, progress.show_progress("refine"):
        time.sleep(0.2)
        progress.say("the model answered")
    assert "\r\x1b[Kthe model answered\r\n" in shown.printed


def test_a_log_gets_a_line_now_and_then(capsys, quick):
    for _ in progress.track(range(3), 3, "verify --all"):
        time.sleep(0.2)
    told = capsys.readouterr().err
    assert "\r" not in told and "\x1b" not in told
    assert told.startswith("verify --all  ") and 2 <= told.count("\n") < 10


def test_what_is_done_soon_leaves_nothing_in_a_log(capsys):
    with progress.show_progress("reading"):
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_signs_of_life_before_the_first_verdict_of_coverage(terminal, quick):
    job = SimpleNamespace(plan=SimpleNamespace(overload="aten::mm"))
    with terminal() as shown, judging("coverage net") as start:
        time.sleep(0.2)
        advance = start(2)
        time.sleep(0.2)
        advance(job, None)
        time.sleep(0.2)
    for doing in (": reading the trace", "  0 of 2  starting children", "  1 of 2  aten::mm"):
        assert f"\rcoverage net{doing}  0:00" in shown.printed


def test_signs_of_life_before_the_first_verdict_of_verify(terminal, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENABLE_CACHE", "cache")  # where no samples are kept
    shutil.copy(KERNEL, "neg.py")
    with terminal() as shown:
        assert run(["verify", "neg.py", "--limit", "1", "--cases", "opinfo"]) == 0
    assert "\rverify neg.py: preparing cases  0:0" in shown.printed
    assert re.search(r"\rverify neg.py  0 of \d+  starting children  ", shown.printed)
    assert "neg.py: \x1b[32mPASS\x1b[0m" in shown.printed


def test_a_long_name_of_a_row_is_whole_in_a_pipe():
    name = "aten::" + "x" * 200
    first, second = table([{"overload": name, "detail": name}]).splitlines()
    assert second.startswith(f"{name}  aten::") and second.endswith("…")
