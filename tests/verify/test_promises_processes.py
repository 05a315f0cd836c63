"""The promises of docs/sandbox.md, "Crash safety", that `enable verify --all` as a whole process keeps."""

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from shared import sampled

from benchmarks import crash_safety as c
from verify.platforms import EXECUTE
from verify.sandbox.processes import descendants

PATIENCE = 90.0  # seconds for a first verdict on a busy machine


@pytest.fixture(scope="module")
def commands():
    with c.Commands() as started:
        yield started


@pytest.fixture(scope="module")
def loop(commands, tmp_path_factory):
    """With the verdicts and the answer of a run left alone."""
    return c.Loop(commands, tmp_path_factory.mktemp("crash"), seed=3)


def started(commands, loop, place, verdicts=1):
    """A command that has kept some verdicts and is at work on others; with 0, one that starts its first child."""
    pid = commands.start(c.arguments_of(loop.library, place), place)
    deadline = time.monotonic() + PATIENCE
    while c.count(place) < verdicts or not descendants(pid):
        assert c.alive(pid) and time.monotonic() < deadline, (place / "stderr").read_text()
        time.sleep(0.01)
    return pid


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has ended


def last_line(place):
    """What a command told last; its progress bars are lines of their own."""
    return re.split(r"[\r\n]+", (place / "stderr").read_text().strip())[-1]


@pytest.mark.parametrize("kills", sampled([1, 6], [1]))
def test_killed_at_random_moments_it_goes_on_to_the_same_verdicts(loop, kills):
    """P1, P2, P12: kill -9 at any time leaves nothing running and a sound store, and costs the case in flight alone.

    The final answer and the records (outcome, layer, rule, detail, report) are those of a run left alone, which judged
    the same cases in a store of its own. benchmarks/crash_safety.py does this 200 times.
    """
    loop.run(kills)
    assert loop.kills == kills
    assert loop.ended >= 1


def test_killed_it_leaves_nothing_in_the_temporary_directory(commands, loop, tmp_path):
    """P1, P10: its zygotes, which see that it is gone, remove their directories."""
    pid = started(commands, loop, tmp_path)
    children = descendants(pid)
    assert list((tmp_path / "tmp").iterdir())
    os.kill(pid, signal.SIGKILL)
    commands.wait(pid)
    c.await_end(children)
    deadline = time.monotonic() + 20
    while list((tmp_path / "tmp").iterdir()):  # the zygotes, which are no children of anybody's now, are at it
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_every_record_names_what_judged_it(loop):
    """P12: versions of torch, triton and the judge, the platform's profile and the sandbox are in each record."""
    assert len(loop.kept) >= 10
    for _, overload, _, platform, judge, *_, sandbox, _ in loop.kept.values():
        assert overload.startswith("aten::")
        assert re.search(r"torch \S+, triton \S+, numpy \S+, python \S+, judge: interpreter \d+, .*trial \d+$", judge)
        assert re.fullmatch(r"sim [0-9a-f]{64}", platform)
        assert sandbox


def test_two_commands_at_once_in_one_workspace(commands, loop, tmp_path):
    """P11: both come to their end with the same answer; each verdict is kept once."""
    places = [tmp_path / "first", tmp_path / "second"]
    arguments = c.arguments_of(loop.library, tmp_path / "both")
    pids = [commands.start(arguments, place) for place in places]
    assert [commands.wait(pid) for pid in pids] == [loop.status] * 2, [last_line(p) for p in places]
    assert [(place / "stdout").read_text() for place in places] == [loop.answer] * 2
    assert c.without_time(c.verdicts_of(tmp_path / "both")) == c.without_time(loop.kept)


@pytest.mark.parametrize(
    ("sent", "group", "verdicts"), [(signal.SIGINT, True, 1), (signal.SIGTERM, False, 0)], ids=["Ctrl-C", "SIGTERM"]
)
def test_stop_means_stop(commands, loop, tmp_path, sent, group, verdicts):
    """P13: one signal ends the command and all its children; it says how to go on, and what was kept is sound."""
    pid = started(commands, loop, tmp_path, verdicts)
    children = descendants(pid)
    (os.killpg if group else os.kill)(pid, sent)  # a terminal signals the whole group
    assert commands.wait(pid) == 128 + sent
    c.await_end(children)
    assert not list((tmp_path / "tmp").iterdir())
    assert re.fullmatch(r"enable: interrupted; to go on, run: enable .* verify --all .*--seed 7", last_line(tmp_path))
    assert "Traceback" not in (tmp_path / "stderr").read_text()
    kept = c.without_time(c.verdicts_of(tmp_path))
    assert kept.items() <= c.without_time(loop.kept).items()


def test_a_second_signal_ends_it_at_once(commands, loop, tmp_path):
    """P13: whoever cannot wait for the children to end signals again."""
    pid = started(commands, loop, tmp_path, verdicts=0)
    while not any(name_of(child) == f"enable {EXECUTE}" for child in descendants(pid)):
        time.sleep(0.01)  # those that ATen is asked in are ended at once
    children = descendants(pid)
    for child in children:
        os.kill(child, signal.SIGSTOP)  # now ending them in order takes long
    try:
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.5)
        assert c.alive(pid)
        os.kill(pid, signal.SIGTERM)
        begun = time.monotonic()
        assert commands.wait(pid) == -signal.SIGTERM
        assert time.monotonic() - begun < 2
    finally:
        for child in children:
            with suppress(ProcessLookupError):  # a job's child is killed first of all
                os.kill(child, signal.SIGCONT)
    c.await_end(children)
    assert c.without_time(c.verdicts_of(tmp_path)).items() <= c.without_time(loop.kept).items()


@pytest.mark.parametrize("what", sampled([["--all"], ["--report", "corpus"]], [["--all"]]))
def test_a_drawn_seed_is_told_before_judging(commands, loop, tmp_path, what):
    """P1: who was killed without warning knows which command goes on."""
    (tmp_path / "corpus" / "bad").mkdir(parents=True)
    (tmp_path / "corpus" / "bad" / "x.py").write_text("import os\n")
    what = [str(tmp_path / "corpus") if word == "corpus" else word for word in what]
    words = ["--workspace", str(tmp_path / "w"), "verify", *what, "--library", str(loop.library)]
    pid = commands.start(words, tmp_path)
    deadline = time.monotonic() + PATIENCE
    while not (told := (tmp_path / "stderr").read_text() if (tmp_path / "stderr").exists() else "").endswith("\n"):
        assert c.alive(pid) and time.monotonic() < deadline
        time.sleep(0.01)
    c.await_end([*c.kill(pid), pid])
    commands.wait(pid)
    first = told.split("\n")[0]
    found = re.fullmatch(r"enable: seed (\d+); if this is stopped, go on with: (enable .*)", first)
    assert found, told
    assert found[2].endswith(f"--seed {found[1]}")
    assert f"--workspace {tmp_path / 'w'} verify {' '.join(what)}" in found[2]


@contextmanager
def tiny(directory, size):
    """A file system of `size` bytes. Only root can have one."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def test_a_full_disk_is_told_in_one_line(commands, loop, tmp_path):
    """P10: where verdicts cannot be kept the command ends with status 2, and those that were kept are sound."""
    with tiny(tmp_path / "full", 96 << 10):
        pid = commands.start(c.arguments_of(loop.library, tmp_path / "full"), tmp_path)
        assert commands.wait(pid) == 2
        assert re.search(r"^enable: \S+verdicts.sqlite: .*full.*; free space", last_line(tmp_path))
        assert "Traceback" not in (tmp_path / "stderr").read_text()
        assert (tmp_path / "stdout").read_text() == ""
        subprocess.run(["mount", "-o", "remount,size=8m", str(tmp_path / "full")], check=True)
        kept = c.without_time(c.verdicts_of(tmp_path / "full"))
    assert kept
    assert kept.items() < c.without_time(loop.kept).items()
