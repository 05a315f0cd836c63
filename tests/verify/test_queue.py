"""One judge and a queue of kernels of which many hang, crash, flood or bomb: none of them costs another its verdict."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from verify import platforms
from verify.cases.case import case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job, Judge
from verify.judging.verdicts import VerdictStore
from verify.outcome import Outcome
from verify.sandbox.processes import descendants

ROOT = Path(__file__).parents[2]
HOSTILE = {
    "sleeps": "time.sleep(600)",
    "loops": "while True: pass",
    "ignores signals": "signal.pthread_sigmask(0, range(1, 64)); time.sleep(600)",
    "a thread loops": "threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start(); time.sleep(600)",
    "segfault": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "exit": "print('PASS'); os._exit(0)",
    "sys.exit": "sys.exit(0)",
    "kills its group": "os.killpg(0, 9); os.kill(os.getppid(), 9)",
    "stack": "sys.setrecursionlimit(1 << 30); f = lambda: f(); f()",
    "memory": "held = []\nwhile True: held.append(bytearray(1 << 28))",
    "forks": "while True: os.fork()",
    "disk": "while True: open(str(time.monotonic_ns()), 'wb').write(bytes(63 << 20))",
    "flood": "for _ in range(3072): os.write(1, bytes(65536)); os.write(2, bytes(65536))",
    "forges": "[os.write(d, bytes([255]) * 64) for d in range(3, 64) if os.path.exists(f'/proc/self/fd/{d}')]",
    "closes": "os.closerange(0, 128)",
}


def hostile(body):
    """The smoke kernel with a wrapper that does `body` and then answers what is not right."""
    modules = "import ctypes, os, signal, sys, threading, time\n"
    wrapper = "def wrapper(self):\n" + textwrap.indent(body, "    ") + "\n    return torch.empty_like(self)\n"
    return (
        KERNEL[: KERNEL.index("import torch")]
        + modules
        + KERNEL[KERNEL.index("import torch") : KERNEL.index("def wrapper")]
        + wrapper
    )


def job(source, elements):
    case = case_of_values("aten::neg", self=torch.arange(float(elements)))
    return Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("neg.py")), (case,))


def test_twenty_good_kernels_among_all_that_hang_and_crash(tmp_path):
    platform = replace(platforms.load("sim"), compile_seconds=5.0, execute_seconds=3.0, memory_bytes=2 << 30)
    good = [job(KERNEL, 100 + i) for i in range(20)]
    bad = {name: job(hostile(body), 200 + i) for i, (name, body) in enumerate(HOSTILE.items())}
    queue = [each for pair in zip(good, bad.values(), strict=False) for each in pair] + good[len(bad) :]
    store = VerdictStore(tmp_path / "verdicts.sqlite")
    with Judge(platform, store, workers=1) as judge:
        judge.judge([job(KERNEL, 99)])
    others = set(descendants(os.getpid()))  # those that ATen is asked in outlive a judge
    with Judge(platform, store, workers=2) as judge:
        verdicts = judge.judge(queue)
    store.close()
    assert [verdicts["aten::neg", each.cases[0].id].outcome for each in good] == [Outcome.PASS] * 20
    for name, each in bad.items():
        verdict = verdicts["aten::neg", each.cases[0].id]
        assert verdict.outcome not in (Outcome.PASS, Outcome.SKIPPED), (name, verdict)
    assert set(descendants(os.getpid())) <= others


def alive(pid):
    """Whether a process runs; one that waits for the init of this machine to notice its end does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


JUDGING = """
import sys
sys.path.insert(0, {root!r}); sys.path.insert(0, {tests!r})
from pathlib import Path
import test_queue as t
store = t.VerdictStore(Path({directory!r}) / "verdicts.sqlite")
with t.Judge(t.platforms.load("sim"), store, workers=2) as judge:
    judge.judge([t.job(t.hostile("time.sleep(600)"), n) for n in (1, 2, 3)])
"""


STOPS = [  # Python dies of the last two alike
    signal.SIGINT,
    signal.SIGKILL,
    pytest.param(signal.SIGTERM, marks=pytest.mark.sweep),
]


@pytest.mark.parametrize("sent", STOPS, ids=lambda s: s.name)
def test_no_child_is_left_when_the_judge_stops(tmp_path, sent):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = JUDGING.format(root=str(ROOT), tests=str(Path(__file__).parent), directory=str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(temporary)}
    judging = subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while len(list(temporary.glob("enable-*/job-*/*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        started = descendants(judging.pid)
        assert len(started) >= 6  # two workers, each with two zygotes, and a child of each at work
        judging.send_signal(sent)
        assert judging.wait(20) != 0
    finally:
        judging.kill()
        judging.wait()
    deadline = time.monotonic() + 20
    while (left := list(filter(alive, started))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
    assert sent is not signal.SIGINT or not list(temporary.iterdir())
