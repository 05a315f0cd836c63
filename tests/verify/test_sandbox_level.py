"""What holds a kernel is told, shown by its effects, and refused where it cannot be had."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from traces import UserError
from verify.child.probe import KERNEL
from verify.platforms import EXECUTE
from verify.sandbox import confine
from verify.sandbox.children import Zygote

ROOT = Path(__file__).parents[2]


def test_level_is_told(start):
    assert start("full").level == confine.level()
    assert start("none").level == "none"
    with pytest.raises(UserError, match="choose from full, none"):
        Zygote(EXECUTE, "some")


def test_a_child_that_is_not_held_is_refused(monkeypatch, job_of):
    """The profile asks for more than a child can show: the same as a child that shows too little."""
    held = Zygote(EXECUTE)
    monkeypatch.setattr(confine.Rights, "denied", frozenset({"write", "telepathy"}))
    try:
        with pytest.raises(UserError, match=r"does not hold.*telepathy was possible.*--sandbox none"):
            held.fork(job_of(KERNEL))
    finally:
        held.close()


WITHOUT = """
import errno, sys
from verify.sandbox import seccomp
{filter}
{then}
"""
INSTALL = "seccomp.install([(0x20, 0, 0, 0), (0x15, 0, 1, {}), (6, 0, 0, 0x50000 | {}), (6, 0, 0, 0x7FFF0000)])"
LACKS = {"Landlock": INSTALL.format(444, "errno.EOPNOTSUPP"), "seccomp": INSTALL.format(317, "errno.ENOSYS")}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="these numbers are of x86-64")
@pytest.mark.parametrize("lacking", LACKS)
def test_where_it_cannot_be_had_it_is_refused_in_one_line(lacking):
    """In a process whose kernel answers as one without Landlock, or without seccomp."""
    nnp = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n"
    start = "from verify.sandbox.children import Zygote\ntry: Zygote('execute')\n"
    start += "except Exception as error: print(type(error).__name__, error)\n"
    start += "with __import__('contextlib').closing(Zygote('execute', 'none')) as z: print(z.level, flush=True)\n"
    doctor = "sys.argv = ['enable', 'doctor']\nfrom enable.cli import main\nmain()"
    done = python(WITHOUT.format(filter=nnp + LACKS[lacking], then=start + doctor))
    refused, level, *told = done.stdout.strip().split("\n")
    assert refused.startswith("UserError ") and lacking in refused and "--sandbox none" in refused
    assert level == "none"
    assert done.returncode == 1
    (line,) = [line for line in told if " sandbox " in line]
    assert line.startswith("FAIL") and lacking in line


def python(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


def test_doctor_tells_the_level():
    done = subprocess.run(
        [sys.executable, "-m", "enable", "doctor", "--json"], cwd=ROOT, capture_output=True, text=True
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["sandbox"]["ok"] and checks["sandbox"]["detail"] == confine.level()


NOBODY = """
import sys, tempfile
sys.path.insert(0, {root!r}); sys.path.insert(0, {tests!r})
import conftest as t
z, c = t.Zygote("execute"), t.Zygote("compile")
print(t.probe_of(z, "open('/etc/passwd')"), t.probe_of(z, "os.fork()"))
print(t.answer_of(z, t.KERNEL)["status"], t.answer_of(c, t.KERNEL)["status"])
z.close(); c.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become nobody")
def test_as_nobody(tmp_path):
    if not readable_by_nobody(Path(sys.executable).resolve()) or not readable_by_nobody(ROOT):
        pytest.skip("this Python or this checkout lies where nobody may not read")
    script = NOBODY.format(root=str(ROOT), tests=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", script],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        env={"TMPDIR": "/tmp", "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("denied: PermissionError") == 2 and done.stdout.strip().endswith("ok ok"), done.stderr


def readable_by_nobody(path):
    return all(p.stat().st_mode & 0o005 == 0o005 for p in (path, *path.parents))
