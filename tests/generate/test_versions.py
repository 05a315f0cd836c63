"""Versions of accepted kernels: what is in force, the history, and what a kill leaves."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from generate.versions import Versions, VersionStanding
from traces import UserError
from verify.contract.kernel_file import KernelFileError


def kernel(text):
    return f'OVERLOADS = ("aten::exp",)\nDTYPES = ("float32",)\n\n\ndef wrapper(self):\n    """{text}"""\n'


A, B, C = map(kernel, "ABC")


@pytest.fixture
def versions(tmp_path):
    return Versions(tmp_path / "kernels")


def put(versions, source, **provenance):
    return versions.put("pointwise", "exp", source, provenance)


def in_force(versions):
    path = versions.path("pointwise", "exp")
    return path.read_text() if path.exists() else None


def history(versions):
    return [(v.number, v.action, str(v.standing)) for v in versions.list("pointwise", "exp")]


def test_versions_are_kept_with_their_provenance(versions):
    assert versions.current("pointwise", "exp") is None and not versions.list("pointwise", "exp")
    assert put(versions, A, model="m", traces=["nanogpt"]) == 1
    assert put(versions, B) == 2
    assert in_force(versions) == B and versions.source("pointwise", "exp", 1) == A
    first, second = versions.list("pointwise", "exp")
    assert first.provenance == {"model": "m", "traces": ["nanogpt"]} and first.overloads == ("aten::exp",)
    assert (first.standing, second.standing) == (VersionStanding.REPLACED, VersionStanding.IN_FORCE)
    assert versions.current("pointwise", "exp") == second
    assert list(versions.names()) == [("pointwise", "exp")]


def test_roll_back_is_a_version_and_goes_further_back_each_time(versions):
    put(versions, A), put(versions, B)
    assert versions.roll_back("pointwise", "exp") == 3 and in_force(versions) == A
    assert versions.roll_back("pointwise", "exp") == 4 and in_force(versions) is None
    with pytest.raises(UserError, match="no version is earlier"):
        versions.roll_back("pointwise", "exp")
    assert versions.roll_back("pointwise", "exp", 2) == 5 and in_force(versions) == B
    assert [v.back_to for v in versions.list("pointwise", "exp")] == [None, None, 1, 0, 2]
    assert put(versions, C) == 6
    assert versions.roll_back("pointwise", "exp") == 7 and in_force(versions) == B
    assert {standing for *_, standing in history(versions)[:-1]} == {"replaced"}


@pytest.mark.parametrize("to, words", [(7, "no version 7; it has 0 (the base library's kernel), 1"), (1, "in force")])
def test_a_number_that_makes_no_sense_is_one_line(versions, to, words):
    put(versions, A)
    with pytest.raises(UserError) as error:
        versions.roll_back("pointwise", "exp", to)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert len(history(versions)) == 1


def test_a_kernel_written_by_hand_is_not_lost(versions):
    put(versions, A)
    versions.path("pointwise", "exp").write_text(B)
    assert versions.current("pointwise", "exp") is None and in_force(versions) == B
    put(versions, C)
    assert history(versions) == [(1, "accepted", "replaced"), (2, "found", "replaced"), (3, "accepted", "in force")]
    assert versions.source("pointwise", "exp", 2) == B


def test_a_kernel_from_before_there_were_versions_becomes_one(versions):
    path = versions.path("pointwise", "exp")
    path.parent.mkdir(parents=True)
    path.write_text(A)
    assert put(versions, B) == 2 and versions.roll_back("pointwise", "exp") == 3 and in_force(versions) == A


def test_no_kernel_file_is_no_version(versions):
    with pytest.raises(KernelFileError):
        put(versions, "print('hello')\n")
    assert not versions.list("pointwise", "exp") and in_force(versions) is None


def test_damage_is_told_and_not_put_in_force(versions):
    put(versions, A), put(versions, B)
    home = versions.path("pointwise", "exp").with_name("exp.versions")
    (home / "001.py").write_text(C)
    with pytest.raises(UserError, match="sha256 differs"):
        versions.roll_back("pointwise", "exp", 1)
    assert in_force(versions) == B
    (home / "002.json").write_text(json.dumps({"format": "enable-version", "version": 9, "number": 2}))
    with pytest.raises(UserError, match="version 9 is unknown"):
        versions.list("pointwise", "exp")
    (home / "002.json").write_text("{")
    with pytest.raises(UserError, match="not the record of a version"):
        versions.list("pointwise", "exp")


def test_threads_and_instances_take_turns(tmp_path):
    sources = [kernel(str(i)) for i in range(12)]
    threads = [threading.Thread(target=put, args=(Versions(tmp_path), source)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Versions(tmp_path).list("pointwise", "exp")
    assert [v.number for v in found] == list(range(1, 13))
    assert [v.standing for v in found] == [VersionStanding.REPLACED] * 11 + [VersionStanding.IN_FORCE]
    assert {Versions(tmp_path).source("pointwise", "exp", n) for n in range(1, 13)} == set(sources)


# Runs an action that changes a layer in a child that is killed by SIGKILL before its n-th system call that writes, for
# n = 1, 2, ... until the child comes to its end; prints how many kills that were.
KILLER = """
import os, shutil, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from generate.versions import Versions
import generate.versions as module, traces.format as format
before, place, action = Path(sys.argv[1]), Path(sys.argv[3]), sys.argv[4]
left = 0

def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return call

n, status = 0, 1
while status:
    n += 1
    target = place / str(n)
    shutil.copytree(before, target)
    pid = os.fork()
    if not pid:
        left = n
        for name in ("replace", "fsync", "mkdir", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        format.open = module.open = counted(open)
        versions = Versions(target)
        {"put": lambda: versions.put("pointwise", "exp", sys.argv[5], {}),
         "roll_back": lambda: versions.roll_back("pointwise", "exp", int(sys.argv[5]))}[action]()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
print(n - 1)
"""


@pytest.mark.parametrize(
    "accepted, action, argument, new",
    [((), "put", C, C), ((A, B), "put", C, C), ((A, B), "roll_back", "1", A), ((A, B), "roll_back", "0", None)],
    ids=["first", "another", "back", "back to the base library"],
)
def test_kill_9_between_any_two_writes(tmp_path, accepted, action, argument, new):
    start = Versions(tmp_path / "start")
    start.root.mkdir()
    for source in accepted:
        put(start, source)
    old, entries = in_force(start), len(accepted)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", KILLER, start.root, root, tmp_path / "killed", action, argument]
    kills = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert kills >= 8
    seen = set()
    for n in range(1, kills + 2):
        versions = Versions(tmp_path / "killed" / str(n))
        now, told = in_force(versions), history(versions)
        seen.add(now)
        assert now in (old, new), n
        assert told[:entries] == history(start) or now == new
        current = versions.current("pointwise", "exp")
        if now == new:
            assert told[entries:] == [(entries + 1, told[-1][1], "in force")] and current.number == entries + 1
        else:
            assert [s for *_, s in told[entries:]] in ([], ["interrupted"])
            assert (current.number if current else 0) == entries
        number = put(versions, kernel("after"))  # and life goes on
        assert in_force(versions) == kernel("after") and versions.current("pointwise", "exp").number == number
        assert "interrupted" not in {s for *_, s in history(versions)[:entries]}
    assert seen == {old, new}
