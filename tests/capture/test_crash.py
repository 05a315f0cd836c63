"""Acceptance test 11: a process that is killed, and a disk that is full."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from traces import Trace, verify

ROOT = Path(__file__).parents[2]
KILLS = 50

# Each process records one trace after the other, so that a kill at any moment meets every stage of recording. They are
# forked for the directories that come in, since importing takes longer than all the rest.
PROGRAM = """
import gc, os, signal, sys, torch
from capture import Recorder
torch.set_num_threads(1)
gc.freeze() # a collection in a child would copy all that is imported, which takes longer than most children live
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    if child := os.fork():
        print(child, flush=True)
        continue
    for i in range(10_000):
        with Recorder(f"{line.strip()}/{i}.trace", max_bytes=1 << 20, per_signature=3):
            for j in range(12):
                x = torch.full((1 << (10 + j), 4), float(i + j))
                (x.exp() + x).sum()
                torch.bernoulli(x.clamp(0, 1))
"""


def start(program, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, **options)


def test_11_killed_at_random_moments(tmp_path):
    draw = random.Random(0)
    unfinished = reopened = 0
    with start(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        for kill in range(KILLS // 5):
            directory = tmp_path / str(kill)
            children = []
            for part in range(5):
                (directory / str(part)).mkdir(parents=True)
                print(directory / str(part), file=server.stdin, flush=True)
                children.append(int(server.stdout.readline()))
            for part, child in enumerate(children):
                while not list(directory.glob(f"{part}/*.trace/manifest.json")):  # on a busy machine this takes seconds
                    time.sleep(0.001)
                time.sleep(draw.uniform(0.0, 0.1))
                os.kill(child, signal.SIGKILL)
                while Path(f"/proc/{child}").exists():
                    time.sleep(0.001)
            for path in sorted(directory.glob("*/*.trace")):
                if not (path / "manifest.json").is_file():  # killed while the directory was made
                    assert not list(path.glob("blobs-*.safetensors"))
                    continue
                trace = Trace.open(path, partial=True)
                unfinished += not trace.complete
                reopened += 1
                assert not verify(trace).mismatches
    assert reopened >= KILLS
    assert unfinished > KILLS // 4


def test_11_a_full_disk(tmp_path):
    program = """
        import resource, signal, sys, warnings, torch
        from capture import Recorder
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with Recorder(sys.argv[1]) as recorder:
                x = torch.ones(1 << 20)
                for i in range(20):
                    x = x + i
        print(x[0].item(), len(caught), caught[0].message)
    """
    child = start(program, tmp_path / "a.trace", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert out.startswith("191.0 1 ") and "is incomplete: " in out and "File too large" in out
    trace = Trace.open(tmp_path / "a.trace", partial=True)
    assert not trace.complete
    assert not verify(trace).mismatches
