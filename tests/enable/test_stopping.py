"""SIGINT and SIGTERM end a command with the line that says how to go on."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from capture import Recorder
from traces.program import NAME_VARIABLE

PROGRAM = Path(sys.executable).parent / "enablekit"
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143}
LIBRARY = ["--library", "library"]
COMMANDS = {
    "capture": ["capture", "train:make"],
    "coverage": ["coverage", "t", *LIBRARY],
    "refine": ["refine", "t", "--only-failing", *LIBRARY],
    "generate": ["generate", "--op", "exp", "--trace", "t", *LIBRARY],
    "tune": ["tune", "exp", "--trace", "t", *LIBRARY],
    "report": ["report", "t", *LIBRARY],
}
TRAIN = """
def make():
    return lambda: open("gate").read()
"""


@pytest.fixture
def home(tmp_path):
    """A directory in which a factory and a kernel library block, because they read from pipes without a writer."""
    with Recorder(tmp_path / ".enable" / "traces" / "t.trace") as recorder:
        torch.linspace(0, 1, 8).exp()
        recorder.step()
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "library" / "pointwise").mkdir(parents=True)
    os.mkfifo(tmp_path / "gate")
    os.mkfifo(tmp_path / "library" / "pointwise" / "exp.py")
    return tmp_path


@pytest.mark.parametrize("sent", ENDS, ids=lambda sent: sent.name)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_is_answered_by_how_to_go_on(home, name, sent):
    env = {key: value for key, value in os.environ.items() if key != NAME_VARIABLE}
    words = [str(PROGRAM), *COMMANDS[name]]
    process = subprocess.Popen(words, cwd=home, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    pipe = home / ("gate" if name == "capture" else "library/pointwise/exp.py")
    with open(pipe, "w"):  # returns as soon as the process reads
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    assert process.returncode == ENDS[sent], err
    last = err.strip().split("\n")[-1]
    prefix, _, command = last.partition("; to go on, run: ")
    assert prefix == "enablekit: interrupted"
    assert shlex.split(command)[: len(words)] == words


def test_a_forked_child_ends_by_the_signal(tmp_path):
    code = """
import os, signal, time
from enable.stopping import sigterm_as_interrupt
with sigterm_as_interrupt() as received:
    child = os.fork()
    if not child:
        try:
            time.sleep(30)
        finally:
            os._exit(1)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM and not received
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True, timeout=60)
