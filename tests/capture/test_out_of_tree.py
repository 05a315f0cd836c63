"""A process ends when the threads of autograd rest: https://github.com/pytorch/pytorch/issues/117762."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A daemon thread of this name that computes without the GIL, and then needs it.
PROGRAM = """
import ctypes, hashlib, sys, threading, time
{prepare}
begun = threading.Event()
def work():
    ctypes.CDLL(None).prctl(15, b"{name}", 0, 0, 0)
    begun.set()
    end = time.monotonic() + {seconds}
    while time.monotonic() < end:
        hashlib.sha256(block).digest()
    sys.stdout.write("done")
    sys.stdout.flush()
    {afterwards}
block = bytes(1 << 22)
threading.Thread(target=work, daemon=True).start()
begun.wait()
"""
SETTLE = "from capture.out_of_tree import prepare; prepare()"


def output(prepare=SETTLE, name="pt_autograd_0", seconds=0.5, afterwards=""):
    program = PROGRAM.format(prepare=prepare, name=name, seconds=seconds, afterwards=afterwards)
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout, time.monotonic() - started


@pytest.mark.parametrize("prepare", [SETTLE, "from capture import sim; sim.install()"])
def test_a_thread_of_autograd_that_computes_is_waited_for(prepare):
    assert output(prepare)[0] == "done"


def test_other_threads_are_not():
    assert output(name="other", seconds=3)[0] == ""


def test_an_idle_thread_delays_nothing():
    assert output(seconds=0.01, afterwards="time.sleep(1000)")[0] == "done"


def test_a_thread_that_never_rests_is_left():
    printed, seconds = output(seconds=1000)
    assert printed == "" and seconds > 2
