"""Hangs, crashes, bombs, floods and forged answers of a kernel: its child ends, and the next one works."""

import itertools
import resource
import struct
from pathlib import Path

import pytest
import torch
from shared import sampled

from traces.values import pack
from verify.child.probe import KERNEL
from verify.platforms import COMPILE
from verify.sandbox import processes
from verify.sandbox.children import ChildDied


def test_stdout_flood_neither_blocks_nor_fills(start, probe, assert_works):
    body = """
        for _ in range(1024):
            os.write(1, b"A" * 65536); print("A" * 65536)
        try:
            for _ in range(1024):
                os.write(2, b"A" * 65536)
        except OSError as error:
            return "limited"
        return "drained"
    """
    assert probe(start("full"), body, 10.0) in ("drained", "limited")
    assert_works(start("full"))


def test_memory_bomb(start, probe):
    assert "MemoryError" in probe(start("full"), "bytearray(16 << 30)")
    assert "denied" in probe(start("full"), "torch.ones(4 << 30)")


@pytest.mark.parametrize("sandbox", ["full", "none"])
def test_large_file(start, sandbox, probe):
    body = """
        with open("large", "wb") as file:
            for _ in range(1024):
                file.write(bytes(1 << 20))
    """
    assert "File too large" in probe(start(sandbox), body)


def test_many_large_files(start, monkeypatch, probe, job_of):
    body = """
        for i in range(100):
            with open(f"large{i}", "wb") as file:
                file.write(bytes(63 << 20))
        time.sleep(10)
    """
    with pytest.raises(ChildDied, match="MiB or .* files in its work directory") as death:
        probe(start("full"), body)
    assert death.value.keep and not death.value.timeout
    assert work_directories(start("full"), job_of) == 0


DEEP = list(itertools.product(("full", "none"), (1_500, 10_000)))


@pytest.mark.parametrize(("sandbox", "depth"), sampled(DEEP, [("full", 10_000), ("none", 1_500)]))
def test_deep_directories(start, sandbox, depth, probe, job_of):
    body = f"""
        here = os.open(".", os.O_RDONLY)
        for i in range({depth}):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.umask(0o777); os.mkdir("closed", dir_fd=here)
        time.sleep({0.5 if depth * 2 < 4096 else 15})
        raise RuntimeError("deep")
    """
    if depth * 2 < 4096:  # PATH_MAX
        assert "deep" in probe(start(sandbox), body)
    else:
        with pytest.raises(ChildDied, match="files in its work directory"):
            probe(start(sandbox), body)
    assert work_directories(start(sandbox), job_of) == 0


@pytest.mark.sweep  # as many directories end it too
def test_many_small_files(start, probe, job_of):
    body = """
        for i in range(1_000_000):
            open(str(i), "w").close()
    """
    with pytest.raises(ChildDied, match="files in its work directory"):
        probe(start("full"), body)
    assert work_directories(start("full"), job_of) == 0


def work_directories(zygote, job_of):
    """What is left of earlier jobs while a next one runs: a zygote forks again only once it has cleaned up."""
    with zygote.fork(job_of(KERNEL)) as child:
        assert child.ask(pack({"self": torch.arange(100.0)}), 20.0)[0]["status"] == "ok"
        found = [p for p in Path(zygote._home.name).iterdir() if p.name.startswith("job-")]
    return len(found) - 1


def test_fork_bomb_without(start, probe, assert_works):
    body = """
        for _ in range(200):
            if not os.fork():
                os.setsid(); time.sleep(600)
        time.sleep(600)
    """
    with pytest.raises(ChildDied, match="more than (32 processes|2048 MiB)"):
        probe(start("none"), body)
    assert_works(start("none"))
    assert len(processes.descendants(start("none").pid)) <= 1


def test_memory_of_many_processes_without(start, probe):
    body = """
        for _ in range(4):
            if not os.fork():
                held = bytearray(b"x") * (900 << 20); time.sleep(600)
        time.sleep(600)
    """
    with pytest.raises(ChildDied, match="MiB of memory"):
        probe(start("none"), body, 120.0)  # memory is slow to get on a busy machine


@pytest.mark.parametrize("sandbox", ["full", "none"])
@pytest.mark.parametrize(
    ("body", "timeout", "how"),
    [
        ("time.sleep(600)", True, "no answer within 1 s"),
        ("while True: pass", True, "no answer within 1 s"),
        (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pthread_sigmask(0, range(1, 64)); time.sleep(600)",
            True,
            "no answer",
        ),
        ("ctypes.string_at(0)", False, "killed by SIGSEGV"),
        ("os.abort()", False, "killed by SIGABRT"),
        ("print('PASS'); os._exit(0)", False, "exited with status 0 before it answered"),
        ("print('PASS'); sys.exit(0)", False, "exited with status 0 before it answered"),
    ],
)
def test_hangs_and_crashes(start, sandbox, body, timeout, how, probe, assert_works):
    with pytest.raises(ChildDied, match=how) as death:
        probe(start(sandbox), body, 1.0)
    assert death.value.timeout is timeout
    assert_works(start(sandbox))


def test_threads_that_go_on_without(start, probe, assert_works):
    with pytest.raises(ChildDied, match="no answer within 1 s"):
        probe(start("none"), "threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start(); time.sleep(600)", 1.0)
    assert_works(start("none"))


def test_daemons_end_at_the_deadline_without(start, outside, probe):
    body = f"""
        if not os.fork():
            os.setsid()
            if not os.fork():
                open({str(outside / "pid")!r}, "w").write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        time.sleep(600)
    """
    with pytest.raises(ChildDied, match="no answer"):
        probe(start("none"), body, 1.0)
    assert not Path(f"/proc/{(outside / 'pid').read_text()}").exists()


def test_a_lost_zygote_is_started_again_without(start, probe, assert_works):
    with pytest.raises(ChildDied, match="lost together"):
        probe(start("none"), "os.kill(os.getppid(), 9); time.sleep(600)")
    assert_works(start("none"))


FRAMES = {
    "no frame": b"\xff" * 64,
    "a huge header": struct.pack("<I", 1 << 31),
    "a huge buffer": b'{"buffers": [6442450944]}',
    "a negative buffer": b'{"buffers": [-1]}',
    "not JSON": b"{" * 1000,
    "deep JSON": b"[" * 100_000,
    "another confinement": b'{"denied": [], "buffers": []}',
}


@pytest.mark.parametrize("name", FRAMES)
def test_forged_frames_end_the_child_or_are_no_answer(start, name, candidate, answer, assert_works):
    frame = FRAMES[name]
    data = frame if name in ("no frame", "a huge header") else struct.pack("<I", len(frame)) + frame
    body = f"""
        for d in range(3, 128):
            if os.path.lexists(f"/proc/self/fd/{{d}}") and "socket" in os.readlink(f"/proc/self/fd/{{d}}"):
                os.write(d, bytes.fromhex({data.hex()!r}))
        os._exit(0)
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        reply = answer(start("full"), candidate(body), 2.0)
        assert "status" not in reply  # what the judge calls malformed
    except ChildDied:
        pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
    assert_works(start("full"))


# ---- compiling ---------------------------------------------------------------------------------------------------


def test_the_compiler_runs_and_nothing_else(start, answer, probe):
    reply = answer(start("full", COMPILE), KERNEL)
    assert reply["status"] == "ok" and reply["kernels"] == ["kernel_neg"] and not reply["refused"]
    for body in ("os.fork() or os._exit(0)", "subprocess.run(['/bin/true'])", "os.execv('/bin/true', ['true'])"):
        assert probe(start("full", COMPILE), body).startswith("denied: PermissionError"), body
    body = "return open(os.path.join(os.path.dirname(triton.__file__), 'backends/nvidia/bin/ptxas'), 'r+b')"
    assert probe(start("full", COMPILE), body).startswith("denied: PermissionError")


def test_caches_are_not_shared(start, probe):
    plant = "cache = os.environ['TRITON_CACHE_DIR']; os.mkdir(cache); open(cache + '/x', 'w'); return os.listdir(cache)"
    assert probe(start("full", COMPILE), plant) == "['x']"
    assert "triton" not in probe(start("full", COMPILE), "return os.listdir()")
    assert probe(start("full", COMPILE), "os.listdir('..')").startswith("denied: PermissionError")


def test_a_compiler_that_is_fed_for_ever_ends(start, answer, assert_works):
    source = KERNEL.replace(
        "tl.store(out_ptr + i, -",
        "for k in tl.static_range(100000):\n        i = i * 3 + k\n    tl.store(out_ptr + i, -",
    )
    with pytest.raises(ChildDied, match="no answer within 2 s"):
        answer(start("full", COMPILE), source, 2.0)
    assert_works(start("full", COMPILE))
