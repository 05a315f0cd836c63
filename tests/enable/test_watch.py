"""`enable verify FILE --watch`."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from enable.cli import run
from enable.cover.watching import changes
from verify.child.probe import KERNEL


def test_each_save_is_judged_until_interrupted(tmp_path):
    path = tmp_path / "neg.py"
    path.write_text(KERNEL)
    program = [Path(sys.executable).parent / "enable", "verify", "neg.py", "--watch", "--limit", "2", "--seed", "1"]
    started = subprocess.Popen(
        program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    )
    timer = threading.Timer(200, started.kill)
    timer.start()

    def verdict():
        lines = []
        while "waiting for neg.py to change" not in (line := next(started.stdout)):
            lines.append(line)
        return "".join(lines)

    try:
        assert verdict().startswith("neg.py: PASS")
        path.write_text(KERNEL.replace("-tl.load", "tl.load"))
        wrong = verdict()
        assert wrong.startswith("neg.py: WRONG [compare]") and "--watch" not in wrong
        path.write_text(KERNEL.replace("def wrapper", "def wrap per"))
        assert verdict().startswith("neg.py: COMPILE_ERROR [lint]")
        (tmp_path / "other.py").write_text(KERNEL)
        (tmp_path / "other.py").rename(path)  # as editors save
        assert verdict().startswith("neg.py: PASS")
        started.send_signal(signal.SIGINT)
        assert started.wait(60) == 130
    finally:
        timer.cancel()
        started.kill()
        started.wait()
        started.stdout.close()


def test_what_a_wrapper_prints_is_shown(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    printing = KERNEL.replace("    return out", '    print("shape", tuple(self.shape), "x" * 100_000)\n    return out')
    words = ["verify", "neg.py", "--limit", "1", "--seed", "1"]
    for source, said in ((printing, "neg.py: PASS"), (printing.replace("-tl.load", "tl.load"), "neg.py: WRONG")):
        Path("neg.py").write_text(source)
        run([*words, "--without", "lint"])
        out = capfd.readouterr().out
        assert out.startswith(said) and "    The wrapper printed:\n    shape (" in out
        assert 3_900 < out.count("x") < 4_200
    assert "worst elements" in out and "self: shape [" in out  # the evidence
    assert run(words) == 1
    assert "[builtin]" in (out := capfd.readouterr().out) and "The wrapper printed" not in out


def test_a_file_that_is_gone_is_waited_for(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("a")
    seen = changes(path)
    next(seen)
    path.unlink()
    threading.Timer(0.3, path.write_text, ["b"]).start()
    next(seen)
    assert path.read_text() == "b"


@pytest.mark.parametrize("words", [["--all"], ["aten::exp"], ["nothing.py"], ["k.py", "--json"]])
def test_what_cannot_be_watched(words, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(KERNEL)
    assert run(["verify", *words, "--watch"]) == 2
    assert "--watch is for one FILE" in capfd.readouterr().err
