"""Acceptance test 12: traces that were damaged, or made to do harm, as `enable trace verify` meets them."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from capture import Recorder
from traces.format import encode_line, shard_chunks

ROOT = Path(__file__).parents[2]
MANIFEST, CALLS, SIGNATURES, SHARD = "manifest.json", "calls-00000.jsonl", "signatures.json", "blobs-00000.safetensors"
HEADROOM = 512 << 20  # bytes of address space that a reader may take beyond what a good trace takes

# Verifies the traces that it is given, the first of which is good, with bounded memory; prints how each went.
READER = """
import io, json, resource, sys
from contextlib import redirect_stderr, redirect_stdout
from enable.cli import run

def verify(path):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = run(["trace", "verify", path])
        except BaseException as error:
            status = repr(error)
    return status, out.getvalue(), err.getvalue()

good, headroom, *paths = sys.argv[1:]
assert verify(good)[0] == 0
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(headroom),) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = {path: verify(path) for path in paths}
print(json.dumps([found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
"""


def verdicts(good, paths, cwd):
    """Of `enable trace verify`: status, standard output and standard error by path; and KiB that its memory grew."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", READER, str(good), str(HEADROOM), *map(str, paths)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def record(path):
    """Call 0 clones [6, 8] floats."""
    torch.manual_seed(0)
    x, table = torch.rand(6, 8), torch.nn.Embedding(20, 4)
    with Recorder(path, model=table):
        y = x.clone()
        y.addmm_(x[:, 2:], torch.rand(6, 8))
        torch.nn.functional.dropout(y)
        table(torch.tensor([3, 1, 4])).sum().backward()


def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def fix_size(root, name):
    edit_json(root / MANIFEST, lambda m: m["files"].update({name: (root / name).stat().st_size}))


def manifest(change):
    return lambda root: edit_json(root / MANIFEST, change)


def call(change, number=0):
    """Alter a stored call and give it a valid checksum, as an attacker would."""

    def damage(root):
        lines = (root / CALLS).read_bytes().splitlines(keepends=True)
        value = json.loads(lines[number].rpartition(b" ")[0])
        change(value)
        (root / CALLS).write_bytes(b"".join([*lines[:number], encode_line(value), *lines[number + 1 :]]))
        fix_size(root, CALLS)

    return damage


def header(field, index=0, **values):
    return call(lambda c: c["header"][field][index].update(values))


def content(spec):
    return call(lambda c: c["header"]["contents"].__setitem__(0, spec))


def shard(change):
    """Rewrite the shard's own header (a dict) and data."""

    def damage(root):
        data = (root / SHARD).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        text, body = change(json.loads(data[8 : 8 + length]), data[8 + length :])
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        (root / SHARD).write_bytes(struct.pack("<Q", len(text)) + text + body)
        fix_size(root, SHARD)

    return damage


def first(header, **values):
    next(iter(header.values())).update(values)
    return header


def twice(header, place):
    """The first key again, for the bytes of the value at `place`."""
    key, value = next(iter(header)), list(header.values())[place]
    return f"{json.dumps(header)[:-1]}, {json.dumps(key)}: {json.dumps(value)}}}".encode()


def truncated(name, by, adjust):
    def damage(root):
        os.truncate(root / name, (root / name).stat().st_size - by)
        if adjust:
            fix_size(root, name)

    return damage


def flipped(name, position):
    def damage(root):
        data = bytearray((root / name).read_bytes())
        data[position] ^= 1 << position % 8
        (root / name).write_bytes(data)

    return damage


def huge_header(root):
    data = (root / SHARD).read_bytes()
    (root / SHARD).write_bytes(struct.pack("<Q", 1 << 62) + data[8:])


def outside(root):
    """A shard that is there, though not in the trace."""
    stray = root.parent / f"{root.name}-stray.safetensors"
    stray.write_bytes(b"".join(shard_chunks({"0" * 64: bytes(64)})))
    edit_json(root / MANIFEST, lambda m: m["files"].update({f"../{stray.name}": stray.stat().st_size}))


def long_line(root):
    with open(root / CALLS, "wb") as file:
        file.write(b'{"id":0,"step":"')
        file.truncate(1 << 30)  # a sparse file
    fix_size(root, CALLS)


def replaced(name, old, new):
    def damage(root):
        data = (root / name).read_bytes()
        assert old in data
        (root / name).write_bytes(data.replace(old, new, 1))

    return damage


HUGE = 1 << 62
STATS = {"min": 0.0, "max": 1.0}
CODE = "__import__('os').system('touch pwned')"
DAMAGE = {
    "truncated shard": (truncated(SHARD, 70, adjust=False), SHARD),
    "truncated shard, size adjusted": (truncated(SHARD, 70, adjust=True), SHARD),
    "shard of no bytes": (lambda root: os.truncate(root / SHARD, 0), SHARD),
    "truncated calls": (truncated(CALLS, 20, adjust=True), f"{CALLS}:"),
    "flipped byte in a blob": (flipped(SHARD, -100), SHARD),
    "flipped byte in a call": (flipped(CALLS, 50), f"{CALLS}:1"),
    "another number in a call": (replaced(CALLS, b'"step":0', b'"step":1'), f"{CALLS}:1: the checksum"),
    "missing shard": (lambda root: (root / SHARD).unlink(), SHARD),
    "missing calls": (lambda root: (root / CALLS).unlink(), CALLS),
    "missing signatures": (lambda root: (root / SIGNATURES).unlink(), SIGNATURES),
    "duplicate key in a shard": (shard(lambda h, data: (twice(h, 0), data)), f"{SHARD}: not JSON (key"),
    "duplicate key in a shard, for other bytes": (shard(lambda h, data: (twice(h, -1), data)), SHARD),
    "duplicate key in the manifest": (
        replaced(MANIFEST, b'"format":', b'"format":2,"format":'), f"{MANIFEST}: not JSON (key 'format' occurs twice)",
    ),
    "two calls of one id": (call(lambda c: c.update(id=0), 1), f"{CALLS}:2: id 0 occurs twice"),
    "a call of no signature": (call(lambda c: c.update(signature="x")), f"{CALLS}:1: signature 'x' is not in"),
    "2**40 elements of stride 0": (
        header("tensors", shape=[1 << 40], stride=[0]), f"{CALLS}:1: header: tensors[0]: shape",
    ),
    "wrong version": (manifest(lambda m: m.update(format=99)), "is format 99, this toolkit reads"),
    "no version": (manifest(lambda m: m.pop("format")), "format"),
    "tensor beyond its span": (header("tensors", shape=[7, 8]), f"{CALLS}:1: header: tensors[0]: reaches byte"),
    "offset beyond its span": (header("tensors", offset=4096), f"{CALLS}:1: header: tensors[0]: reaches byte"),
    "tensor of no group": (header("tensors", group=9), f"{CALLS}:1: header: tensors[0]: group"),
    "span beyond its blob": (header("groups", nbytes=2 << 30), f"{CALLS}:1"),
    "negative shape": (header("tensors", shape=[-6, 8]), f"{CALLS}:1: header: tensors[0]: shape"),
    "negative stride": (header("tensors", stride=[-8, 1]), f"{CALLS}:1: header: tensors[0]: shape"),
    "negative offset": (header("tensors", offset=-4), f"{CALLS}:1: header: tensors[0]: shape"),
    "negative span": (header("groups", nbytes=-192), f"{CALLS}:1: header.groups[0]: nbytes"),
    "alignment of 4096": (header("groups", align=4096), f"{CALLS}:1: header: groups[0]"),
    "2**62 elements": (header("tensors", shape=[HUGE], stride=[1]), f"{CALLS}:1: header: tensors[0]: shape"),
    "2**31 times 2**31 elements of stride 0": (
        header("tensors", shape=[1 << 31, 1 << 31], stride=[0, 0]), f"{CALLS}:1: header: tensors[0]: shape",
    ),
    "a span of 2**62 bytes": (header("groups", nbytes=HUGE), f"{CALLS}:1: header"),
    "a blob of 2**62 bytes": (shard(lambda h, data: (first(h, shape=[HUGE]), data)), SHARD),
    "a shard header of 2**62 bytes": (huge_header, SHARD),
    "drawn: 2**40 bytes": (
        lambda root: (content({"level": "seeded", "stats": STATS, "seed": 1})(root),
                      header("groups", nbytes=1 << 40)(root)), f"{CALLS}:1: header.contents claim",
    ),
    "unknown: 2**40 bytes": (
        lambda root: (content(None)(root), header("groups", nbytes=1 << 40, known=False)(root)),
        f"{CALLS}:1: header: groups claim",
    ),
    "a state of 2**40 bytes": (
        call(lambda c: c.update(rng={"device": "cpu", "blob": "0" * 64, "nbytes": 1 << 40})), f"{CALLS}:1",
    ),
    "blob that is a path": (content("../../../etc/passwd"), f"{CALLS}:1: header.contents[0]"),
    "shard outside the trace": (outside, f"{MANIFEST}: files lists '../"),
    "a line of 1 GB": (long_line, f"{CALLS}:1"),
    "an operator that is code": (call(lambda c: c.update(overload=f"aten::{CODE}")), f"{CALLS}:1: overload"),
    "an argument that is code": (
        call(lambda c: c["header"]["tree"].update(self={"eval": CODE})), f"{CALLS}:1: header",
    ),
    "a dtype that is code": (header("tensors", dtype=CODE), f"{CALLS}:1: header: tensors[0]: unknown dtype"),
    "a device that is code": (call(lambda c: c["header"]["tree"].update(memory_format={"device": CODE})), f"{CALLS}:1"),
}  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "good.trace"
    record(path)
    return path


@pytest.fixture(scope="module")
def judged(trace):
    """What the reader says of every damage, by its name; and how much its memory grew, in KiB."""
    paths = {}
    for number, (name, (damage, _)) in enumerate(DAMAGE.items()):
        paths[name] = shutil.copytree(trace, trace.parent / f"{number}.trace")
        damage(paths[name])
    found, grown = verdicts(trace, paths.values(), trace.parent)
    return {name: found[str(path)] for name, path in paths.items()}, grown


def assert_refused(verdict, named=""):
    status, out, err = verdict
    assert (status, out) == (2, ""), (status, out, err)
    assert err.startswith("enable: ") and err.count("\n") == 1 and err.endswith("\n")
    assert named in err
    assert len(err) < 500


@pytest.mark.parametrize("name", DAMAGE)
def test_12_damage_is_one_line_that_names_file_and_field(judged, name):
    assert_refused(judged[0][name], DAMAGE[name][1])


def test_12_nothing_that_is_claimed_is_allocated_and_nothing_is_run(judged, trace):
    """Each reader had HEADROOM at most; the longest line that is read has 16 MiB."""
    assert judged[1] << 10 < 200 << 20
    assert not (trace.parent / "pwned").exists()


def test_12_any_flipped_byte_of_a_shard_is_found(trace, tmp_path):
    draw = random.Random(0)
    positions = draw.sample(range((trace / SHARD).stat().st_size), 60)
    paths = [shutil.copytree(trace, tmp_path / f"{position}.trace") for position in positions]
    for position, path in zip(positions, paths, strict=True):
        flipped(SHARD, position)(path)
    found, _ = verdicts(trace, paths, tmp_path)
    for path in paths:
        assert_refused(found[str(path)])
        assert SHARD in found[str(path)][2] or CALLS in found[str(path)][2]


def test_12_an_operator_of_nobody_is_told_and_not_run(trace, tmp_path):
    names = [CODE, f"os::{CODE}", "os::system"]
    paths = [shutil.copytree(trace, tmp_path / f"{number}.trace") for number in range(len(names))]
    for name, path in zip(names, paths, strict=True):
        call(lambda c, name=name: c.update(overload=name))(path)
    found, _ = verdicts(trace, paths, tmp_path)
    for path in paths:
        _, out, err = found[str(path)]
        assert "1 not comparable: not an ATen operator" in out and not err
    assert not (tmp_path / "pwned").exists()
