"""The promises of docs/sandbox.md, "Crash safety", that the judge and its store keep. Each test names its own."""

import platform as machine
import random
import re
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from shared import judging

from enable.cli import run
from enable.cover.verifier import Table
from traces import UserError
from verify import platforms
from verify.cases.case import Case, case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.judging.stages import TrialResult
from verify.judging.verdicts import Identity, VerdictStore
from verify.outcome import Outcome, Verdict
from verify.sandbox import seccomp
from verify.sandbox.confine import level

ROOT = Path(__file__).parents[2]
SIM = replace(platforms.load("sim"), compile_seconds=10.0, execute_seconds=4.0, memory_bytes=2 << 30)

# A process that keeps verdicts as fast as it can and writes the number of each that was acknowledged.
WRITER = """
import os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from traces import UserError
from verify import platforms
from verify.sandbox import seccomp
from verify.outcome import Outcome, Verdict
from verify.judging.verdicts import Identity, VerdictStore
store, sim = VerdictStore(Path(sys.argv[2])), platforms.load("sim")
first, last = int(sys.argv[3]), int(sys.argv[4])

def put(n):
    identity = Identity(("k",), "aten::mm", str(n), sim)
    store.put(identity, Verdict(str(n), Outcome.WRONG, "d" * 100, "r" * (n * 37 % 9000)), 0.0)
    os.write(1, b"%d\\n" % n)

{before}
for n in range(first, last):
    put(n)
"""


def writer(path, before="", first=0, last=1 << 30):
    words = [sys.executable, "-c", WRITER.format(before=before), str(ROOT), str(path), str(first), str(last)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def numbers(text):
    """Of the verdicts that were acknowledged, without a last line that was cut off."""
    return {int(line) for line in text.split(b"\n")[:-1]}


def kept(path):
    """The numbers of what a sound store holds."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = db.execute("SELECT case_id, detail, report FROM verdicts").fetchall()
    for number, detail, report in rows:
        assert (detail, len(report)) == ("d" * 100, int(number) * 37 % 9000)
    return {int(row[0]) for row in rows}


def test_no_verdict_is_torn_or_lost_by_kill_9(tmp_path):
    """P2: killed in a tight loop, the store is sound each time and holds every verdict that was acknowledged."""
    path, chance, acknowledged = tmp_path / "v.sqlite", random.Random(5), set()
    for _ in range(6):
        first = max(acknowledged, default=-1) + 1
        with writer(path, first=first) as process:
            begun = process.stdout.readline()
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
            told = numbers(begun + process.stdout.read())
        acknowledged |= told
        now = kept(path)
        assert acknowledged <= now
        assert len(now - acknowledged) <= 1  # one may be on the disk and not told
        acknowledged = now
    assert len(acknowledged) > 12


NO_FSYNC = """
import ctypes
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
put(0)
{pragma}
seccomp.install([(0x20, 0, 0, 0), (0x15, 1, 0, {fsync}), (0x15, 0, 1, {fdatasync}), (0x06, 0, 0, 0x50005),
                 (0x06, 0, 0, 0x7FFF0000)])
"""
CALLS = {"x86_64": (74, 75), "aarch64": (82, 83)}  # fsync, fdatasync


@pytest.mark.skipif(not seccomp.available(), reason="no seccomp here")
@pytest.mark.parametrize(
    ("pragma", "told"),
    [("", set()), ('store._db.execute("PRAGMA synchronous=NORMAL")', {1})],
    ids=["as it is", "NORMAL"],
)
def test_a_verdict_is_synchronised_before_it_is_acknowledged(tmp_path, pragma, told):
    """P3: where fsync fails, put fails: it does not return before the disk has the verdict.

    The store as it opens itself is compared with the same under synchronous=NORMAL, which does not ask for it.
    """
    fsync, fdatasync = CALLS[machine.machine()]
    before = NO_FSYNC.format(pragma=pragma, fsync=fsync, fdatasync=fdatasync)
    with writer(tmp_path / "v.sqlite", before, 1, 2) as process:
        output, errors = process.communicate()
    assert numbers(output) == {0} | told
    assert ("could not be written" in errors.decode()) == (not told)


def test_the_store_asks_for_full_synchronisation(tmp_path):
    """P3: on the very connection that writes."""
    store = VerdictStore(tmp_path / "v.sqlite")
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_a_store_that_cannot_grow_is_told_and_stays_sound(tmp_path):
    """P10: one line that says what to do; what was acknowledged is there; with space again it goes on."""
    path = tmp_path / "v.sqlite"
    limit = "import signal; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))"
    with writer(path, limit) as process:
        output, errors = process.communicate()
    message = errors.decode().strip().split("\n")[-1]
    assert re.search(r"UserError: \S+v.sqlite: the verdict could not be written \(.*\); free space", message), message
    acknowledged = numbers(output)
    assert len(acknowledged) > 5
    assert kept(path) == acknowledged
    following = max(acknowledged) + 1
    with writer(path, first=following, last=following + 3) as process:
        assert process.wait() == 0
    assert kept(path) == acknowledged | {following, following + 1, following + 2}


def test_many_open_one_new_store_at_once(tmp_path):
    """P11: whoever comes first makes the table, the others wait; nobody is turned away."""
    failed = []
    for turn in range(20):
        gate = threading.Barrier(6)

        def open_it(path, gate=gate):
            gate.wait()
            try:
                VerdictStore(path).close()
            except UserError as error:
                failed.append(error)

        threads = [threading.Thread(target=open_it, args=(tmp_path / f"{turn}.sqlite",)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


def test_a_kept_verdict_is_never_changed(tmp_path):
    """P11, P12: of two processes that judge one case at once the first is believed, by both from then on."""
    identity = Identity(("k",), "aten::mm", "c", SIM)
    store = VerdictStore(tmp_path / "v.sqlite")
    store.put(identity, Verdict("c", Outcome.PASS), 0.0)
    store.put(identity, Verdict("c", Outcome.WRONG), 0.0)
    assert store.get(identity).outcome is Outcome.PASS
    store.close()


def wrapper(body):
    """The smoke kernel with a wrapper that does `body` before it answers rightly."""
    text = KERNEL.replace("def wrapper(self):\n", "def wrapper(self):\n" + textwrap.indent(body + "\n", "    "))
    return text.replace("import torch\n", "import ctypes, os, socket, sys, time\nimport torch\n", 1)


def job(source, elements, dtype=torch.float32):
    case = case_of_values("aten::neg", self=torch.arange(float(elements)).to(dtype))
    return Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("neg.py")), (case,))


# What is done to a kernel: source, outcome, layer, a part of the detail, and whether the verdict is kept.
FAULTS = {
    "nothing": (KERNEL, Outcome.PASS, "", "", True),
    "wrong values": (KERNEL.replace("-tl.load", "tl.load"), Outcome.WRONG, "compare", "elements wrong", True),
    "past the end": (KERNEL.replace("mask=i < n)\n", "mask=i <= n)\n"), Outcome.WRONG, "access", "out_ptr", True),
    "no such name": (KERNEL.replace("-tl.load", "-tl.lode"), Outcome.COMPILE_ERROR, "compile", "lode", True),
    "raises": (wrapper("raise ValueError('no')"), Outcome.RUNTIME_ERROR, "run", "ValueError: no", True),
    "not implemented": (wrapper("raise NotImplementedError"), Outcome.RUNTIME_ERROR, "run", "NotImplemented", True),
    "the library": (wrapper("return torch.neg(self)"), Outcome.CHEAT, "dispatch", "aten::neg", True),
    "nothing launched": (wrapper("return torch.empty_like(self)"), Outcome.CHEAT, "launch", "no kernel", True),
    "segfault": (wrapper("ctypes.string_at(0)"), Outcome.CRASH, "crash", "SIGSEGV", True),
    "abort": (wrapper("os.abort()"), Outcome.CRASH, "crash", "SIGABRT", True),
    "exit 0": (
        wrapper("print('PASS', flush=True); os._exit(0)"),
        Outcome.CRASH,
        "crash",
        "status 0 before",
        True,
    ),
    "SystemExit": (wrapper("sys.exit(0)"), Outcome.CRASH, "crash", "status 0 before", True),
    "killed": (wrapper("os.kill(os.getpid(), 9)"), Outcome.CRASH, "crash", "SIGKILL", False),
    "hangs": (wrapper("time.sleep(60)"), Outcome.TIMEOUT, "time", "no answer within", False),
    "out of memory": (wrapper("x = bytearray(3 << 30)"), Outcome.RUNTIME_ERROR, "run", "MemoryError", True),
    "opens a socket": (wrapper("socket.socket()"), Outcome.RUNTIME_ERROR, "run", "PermissionError", True),
    "writes outside": (wrapper("open('/tmp/enable-canary', 'w')"), Outcome.RUNTIME_ERROR, "run", "Permission", True),
    "not served": (KERNEL.replace('("float32",)', '("float16",)'), Outcome.SKIPPED, "", "do not list float32", False),
}
ELEMENTS = {name: 100 + i for i, name in enumerate(FAULTS)}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Every fault judged once, then a case whose reference cannot be had: verdicts by fault, and the store's path."""

    def broken():
        raise ZeroDivisionError("of the judge")

    path = tmp_path_factory.mktemp("store") / "v.sqlite"
    with judging(path, SIM, workers=2) as judge:
        verdicts = judge_all(FAULTS, judge)
        each = replace(job(KERNEL, 10), cases=(Case("broken", "aten::neg", "", broken),))
        with pytest.raises(ZeroDivisionError):
            judge.judge([each])
    return verdicts, path


def judge_all(names, judge):
    jobs = {name: job(FAULTS[name][0], ELEMENTS[name]) for name in names}
    verdicts = judge.judge(jobs.values())
    return {name: verdicts["aten::neg", each.cases[0].id] for name, each in jobs.items()}


def records(path):
    with closing(sqlite3.connect(path)) as db:
        names = "key, case_id, platform, judge, outcome, layer, rule, detail, report, sandbox"
        return {row[0]: row[1:] for row in db.execute(f"SELECT {names} FROM verdicts")}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_own_outcome(judged, name):
    """P6, P9: also an exit status of 0, a printed PASS and a skip by exception are no pass. The parent lives on.

    What a busy machine may have done (a deadline, an unexplained SIGKILL) and what was not run is told and not kept.
    """
    _, outcome, layer, detail, lasting = FAULTS[name]
    verdicts, path = judged
    verdict = verdicts[name]
    assert (verdict.outcome, verdict.layer) == (outcome, layer), verdict
    assert detail in verdict.detail
    assert verdict.sandbox == level("full")
    found = {row[0] for row in records(path).values()}
    assert (verdict.case in found) == lasting
    assert not Path("/tmp/enable-canary").exists()


def test_the_same_input_has_the_same_verdict(judged, tmp_path):
    """P12: ten kept records, judged again by other processes for a store of their own, are the same to the letter."""
    _, path = judged
    before = records(path)
    lasting = [name for name, fault in FAULTS.items() if fault[-1]]
    names = random.Random(2).sample(lasting, 10)
    with judging(tmp_path / "again.sqlite", SIM) as judge:
        judge_all(names, judge)
    again = records(tmp_path / "again.sqlite")
    assert len(again) == 10
    assert again == {key: before[key] for key in again}


SECOND_CALL = wrapper("""
if self.numel() >= 500:
    wrapper.calls = getattr(wrapper, "calls", 0) + 1
    if wrapper.calls > 1:
        raise ValueError("called before")
""")
CRASH_AT_LARGE = wrapper("if self.numel() > 100:\n    os.abort()")


@pytest.mark.parametrize("source, sizes", [(SECOND_CALL, (10, 20, 600)), (CRASH_AT_LARGE, (10, 200, 300, 400))])
def test_what_is_run_again_and_skipped_does_not_depend_on_what_is_kept(source, sizes, tmp_path):
    """P1, P12: which cases are repeated, and after how many deaths the others are left, is the same after a restart."""
    cases = tuple(case_of_values("aten::neg", self=torch.arange(1.0, 1.0 + n).unsqueeze(0)) for n in sizes)
    plan, kernel = Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("neg.py"))
    told = []
    for before in (0, 1, 2):
        path = tmp_path / f"{before}.sqlite"
        whole, left = Job(plan, kernel, cases, repeats=2), iter(range(before))
        with judging(path, SIM) as judge, suppress(StopIteration):  # as if killed after so many verdicts
            judge.judge([whole], lambda job, verdict, left=left: next(left))
        with judging(path, SIM) as judge:
            found = judge.judge([whole])
        told.append([(found["aten::neg", c.id].outcome, found["aten::neg", c.id].detail) for c in cases])
    assert told == [told[0]] * 3
    assert told[0][0][0] is Outcome.PASS


def test_an_error_of_the_judge_is_no_verdict(judged):
    """P6: it is raised (the fixture saw that), and nothing is kept of the case."""
    assert "broken" not in {row[0] for row in records(judged[1]).values()}


def test_no_case_run_is_no_pass(tmp_path, capsys):
    """P6: exit status 1, and it says why."""
    kernel = tmp_path / "neg.py"
    kernel.write_text(KERNEL.replace('("float32",)', '("float8_e4m3fn",)'))
    assert run(["--workspace", str(tmp_path / "w"), "verify", str(kernel), "--without", "lint"]) == 1
    told = capsys.readouterr().out
    assert "SKIPPED" in told and "no case was run" in told and "0 cases run" in told


def test_a_report_counts_what_was_not_judged_as_misjudged():
    """P6: neither a bad nor an honest kernel may be missing from it."""
    for family in ("A1", "honest"):
        table = Table()
        table.add(family, TrialResult("x.py", Outcome.SKIPPED))
        assert not table.sound


def test_a_full_work_directory_harms_nobody_else(tmp_path, monkeypatch):
    """P10: a child fills the disk that all children share; the verdicts lie elsewhere, and the next kernel passes."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    fills = "for n in range(99): open(str(n), 'wb').write(bytes(1 << 20))"
    try:
        monkeypatch.setattr("tempfile.tempdir", str(small))
        jobs = [job(wrapper(fills), 30), job(KERNEL, 31)]
        with judging(tmp_path / "v.sqlite", SIM) as judge:
            verdicts = [judge.judge([each])["aten::neg", each.cases[0].id] for each in jobs]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    assert verdicts[0].outcome in (Outcome.RUNTIME_ERROR, Outcome.CRASH)
    assert verdicts[1].outcome is Outcome.PASS
    assert verdicts[1].case in {row[0] for row in records(tmp_path / "v.sqlite").values()}
