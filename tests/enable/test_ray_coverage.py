"""`enable coverage --engine ray`, on a local cluster of two workers."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from warm import python

ROOT = Path(__file__).parents[2]
COVERAGE = [sys.executable, "-m", "enable", "coverage", "opinfo", "--json"]
TOLD = "kernel, overload, case_id, platform, allowed, strict, off, repeated, sandbox, judge, outcome, detail, variants"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A workspace with a trace of two operators of OpInfo, and the answer of coverage on local children."""
    directory = tmp_path_factory.mktemp("ray")
    chosen = ["--op", "sqrt", "--op", "neg", "--dtype", "float32"]
    python("-m", "enable", "capture", "opinfo", *chosen, cwd=directory).check_returncode()
    return directory


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def verdicts(directory):
    """What is kept, without times."""
    path = directory / ".enable" / "verdicts.sqlite"
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path, timeout=60)) as db:
        made = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'verdicts'").fetchone()
        return set(db.execute(f"SELECT {TOLD} FROM verdicts")) if made else set()


def test_the_same_verdicts_as_local_also_when_a_worker_is_killed(home):
    pytest.importorskip("ray")
    local = python(*COVERAGE[1:], cwd=home)
    local.check_returncode()
    kept = verdicts(home)
    (home / ".enable" / "verdicts.sqlite").unlink()
    with open(home / "stdout", "w") as out, open(home / "stderr", "w") as err:
        process = subprocess.Popen([*COVERAGE, "--engine", "ray"], cwd=home, stdout=out, stderr=err, env=environment())
        while not verdicts(home):  # until one is at work
            assert process.poll() is None, (home / "stderr").read_text()
            time.sleep(0.02)
        before = verdicts(home)
        victims = [p for p in Path("/proc").glob("[0-9]*") if words_of(p).startswith(b"ray::_Bench")]
        os.kill(int(victims[0].name), signal.SIGKILL)
        assert process.wait(200) == 0, (home / "stderr").read_text()
    assert before < verdicts(home) == kept, "nothing is lost, and nothing else came of it"
    assert (home / "stdout").read_text() == local.stdout


def words_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""  # it has ended


def test_an_unknown_engine_is_told_in_one_line(home):
    done = python(*COVERAGE[1:], "--engine", "slurm", cwd=home)
    assert (done.returncode, done.stderr) == (2, "enable: unknown engine 'slurm'; choose from local, ray\n")
