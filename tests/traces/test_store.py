import json
import os
import shutil
import stat
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from traces import Trace, TraceError, TraceWriter, UserError, jsonable, verify
from traces.fingerprint import results
from traces.format import encode_line
from traces.overloads import bind, resolve
from traces.values import pack, unpack
from traces.writer import CallSite


def add(writer, x, y, seq=0, step=0, phase="forward"):
    """Record `x + y` by hand."""
    op = resolve("aten::add.Tensor")
    arguments = bind(op, (x, y), {})
    signature = writer.signature("aten::add.Tensor", "compute", f"{list(x.shape)}")
    signature.count(phase, step)
    header = writer.store(pack(arguments))
    return writer.add_call(signature, CallSite(seq, step, phase, "net.0"), header, results(op, arguments, x + y))


@pytest.fixture
def trace_path(tmp_path):
    writer = TraceWriter(tmp_path / "a.trace", {"model": "test"})
    add(writer, torch.arange(6.0).view(2, 3), torch.ones(3))
    add(writer, torch.arange(40.0), torch.ones(1), seq=1)
    writer.close()
    return tmp_path / "a.trace"


def read_everything(path, partial=False):
    trace = Trace.open(path, partial=partial)
    assert isinstance(trace.signatures, dict)
    return [unpack(trace.packed(record), record.where) for record in trace.calls()]


def test_round_trip(trace_path):
    trace = Trace.open(trace_path)
    assert trace.complete
    assert trace.manifest["info"] == {"model": "test"}
    assert (trace.manifest["calls"], trace.manifest["stored"], trace.manifest["steps"]) == (2, 2, 1)
    first, second = trace.calls()
    assert (first.id, first.seq, first.step, first.phase, first.module) == (0, 0, 0, "forward", "net.0")
    assert (first.overload, first.kind, first.nbytes) == ("aten::add.Tensor", "compute", 36)
    assert second.id == 1
    signature = trace.signatures[first.signature]
    assert (signature.overload, signature.calls, signature.phases) == ("aten::add.Tensor", 1, {"forward": 1})
    assert signature.samples == (0,)
    back = unpack(trace.packed(first))
    assert back["self"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert back["alpha"] == 1
    assert verify(trace).exact == 2


def test_counts_by_phase_and_by_runs_of_steps(tmp_path):
    writer = TraceWriter(tmp_path / "a.trace")
    signature = writer.signature("aten::add.Tensor", "compute", "(x)")
    for step, calls in enumerate([2, 2, 2, 1, 0, 1]):
        for _ in range(calls):
            signature.count("forward" if step < 5 else "loss", step)
    assert writer.signature("aten::add.Tensor", "compute", "(x)") is signature
    writer.close()
    (found,) = Trace.open(tmp_path / "a.trace").signatures.values()
    assert found.steps == ((0, 2, 2), (3, 3, 1), (5, 5, 1))
    assert found.phases == {"forward": 7, "loss": 1}
    assert found.calls == 8


def test_alike_steps_count_as_one_after_another(tmp_path):
    several = [({"f": 2}, 0, 3), ({"f": 1, "b": 1}, 4, 4), ({"f": 3}, 4, 9), ({"b": 3}, 9, 10), ({"f": 3}, 12, 14)]
    writer = TraceWriter(tmp_path / "a.trace")
    together, apart = (writer.signature("aten::add.Tensor", "compute", told) for told in ("together", "apart"))
    for phases, first, last in several:
        together.count_alike(phases, first, last)
        for step in range(first, last + 1):
            for phase, calls in phases.items():
                apart.count(phase, step, calls)
    assert together.phases == apart.phases == {"f": 36, "b": 7}
    assert together.as_json()["steps"] == apart.as_json()["steps"]
    assert together.steps == [[0, 3, 2], [4, 4, 5], [5, 8, 3], [9, 9, 6], [10, 10, 3], [12, 14, 3]]
    writer.close()


def test_equal_bytes_are_kept_once(tmp_path):
    writer = TraceWriter(tmp_path / "a.trace")
    x = torch.arange(1000.0)
    for _ in range(3):
        add(writer, x, x.clone())
    writer.close()
    (shard,) = (tmp_path / "a.trace").glob("blobs-*")
    assert 4000 <= shard.stat().st_size < 4500


def test_blobs_go_to_several_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("traces.writer.SHARD_BYTES", 4096)
    writer = TraceWriter(tmp_path / "a.trace")
    for i in range(8):
        add(writer, torch.full((300,), float(i)), torch.tensor([float(-i)]), seq=i)
    writer.close()
    assert len(list((tmp_path / "a.trace").glob("blobs-*"))) > 1
    assert verify(Trace.open(tmp_path / "a.trace")).exact == 8


def test_only_the_owner_may_read(trace_path):
    assert stat.S_IMODE(os.stat(trace_path).st_mode) == 0o700


def test_an_existing_directory_is_refused_and_only_a_trace_is_replaced(trace_path, tmp_path):
    with pytest.raises(UserError, match="exists; pass --force"):
        TraceWriter(trace_path)
    TraceWriter(trace_path, force=True).close()
    assert list(Trace.open(trace_path).calls()) == []
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(UserError, match="not a trace"):
        TraceWriter(tmp_path / "work", force=True)
    assert (tmp_path / "work" / "thesis.tex").exists()


def test_a_directory_that_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot create"):
        TraceWriter(tmp_path / "file" / "a.trace")


def test_an_unfinished_trace_is_never_taken_for_a_whole_one(tmp_path):
    path = tmp_path / "a.trace"
    writer = TraceWriter(path)
    add(writer, torch.ones(3), torch.ones(3))
    writer.flush()
    add(writer, torch.ones(4), torch.ones(4))  # never made durable
    with pytest.raises(TraceError, match="did not finish"):
        Trace.open(path)
    trace = Trace.open(path, partial=True)
    assert [r.id for r in trace.calls()] == [0]
    assert [s.overload for s in trace.signatures.values()] == ["aten::add.Tensor"]
    assert verify(trace).exact == 1
    writer.abandon()


def test_a_torn_last_line_of_an_unfinished_trace_is_dropped_and_reported(tmp_path):
    path = tmp_path / "a.trace"
    writer = TraceWriter(path)
    for _ in range(3):
        add(writer, torch.ones(3), torch.ones(3))
    writer.flush()
    whole = (path / "calls-00000.jsonl").read_bytes()
    for cut in range(1, 40):
        (path / "calls-00000.jsonl").write_bytes(whole[:-cut])
        trace = Trace.open(path, partial=True)
        assert [r.id for r in trace.calls()] == [0, 1]
        assert trace.torn
    writer.abandon()


def test_a_trace_of_a_writer_that_was_killed_before_its_first_file_of_calls_holds_none(tmp_path):
    path = tmp_path / "a.trace"
    writer = TraceWriter(path)
    (path / "calls-00000.jsonl").unlink()
    trace = Trace.open(path, partial=True)
    assert list(trace.calls()) == [] and trace.signatures == {} and not trace.damage
    add(writer, torch.ones(3), torch.ones(3))
    writer.flush()  # there are blobs now: calls that named them are lost, and that is said
    with pytest.raises(TraceError, match=r"calls-00000.jsonl: cannot be read"):
        list(Trace.open(path, partial=True).calls())
    writer.abandon()


def test_closing_as_incomplete(tmp_path):
    TraceWriter(tmp_path / "a.trace").close(complete=False)
    with pytest.raises(TraceError, match="did not finish"):
        Trace.open(tmp_path / "a.trace")


def test_abandoning_leaves_nothing(tmp_path):
    TraceWriter(tmp_path / "a.trace").abandon()
    assert list(tmp_path.iterdir()) == []


def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def manifest(change):
    return lambda root: edit_json(root / "manifest.json", change)


def signatures(change):
    def damage(root):
        edit_json(root / "signatures.json", lambda value: change(next(iter(value.values()))))
        fix_size(root, "signatures.json")

    return damage


def calls(change):
    """Alter the first call and give it a valid checksum, as an attacker would."""

    def damage(root):
        path = root / "calls-00000.jsonl"
        first, *rest = path.read_bytes().splitlines(keepends=True)
        value = json.loads(first.rpartition(b" ")[0])
        change(value)
        path.write_bytes(b"".join([encode_line(value), *rest]))
        fix_size(root, path.name)

    return damage


def fix_size(root, name):
    manifest(lambda m: m["files"].update({name: (root / name).stat().st_size}))(root)


def shard(change):
    def damage(root):
        path = root / "blobs-00000.safetensors"
        path.write_bytes(change(path.read_bytes()))
        fix_size(root, path.name)

    return damage


def header_of(data):
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(change):
    def rewrite(data):
        header, body = header_of(data)
        text = change(header)
        text = text if isinstance(text, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + body

    return shard(rewrite)


def doubled_key(header):
    """The first key again, for the bytes of the last."""
    (key, *_), (*_, value) = header.keys(), header.values()
    return (json.dumps(header)[:-1] + f', "{key}": {json.dumps(value)}}}').encode()


def oversized_line(root):
    with open(root / "calls-00000.jsonl", "wb") as file:
        file.truncate(1 << 33)  # a sparse file: 8 GB of zero bytes without a newline
    fix_size(root, "calls-00000.jsonl")


MANIFEST, CALLS, SIGNATURES, SHARD = "manifest.json", "calls-00000.jsonl", "signatures.json", "blobs-00000.safetensors"
DAMAGE = {
    "truncated shard": (lambda r: os.truncate(r / SHARD, 100), SHARD),
    "truncated shard, size adjusted": (shard(lambda d: d[:-70]), SHARD),
    "flipped byte in a blob": (shard(lambda d: d[:-62] + bytes([d[-62] ^ 1]) + d[-61:]), SHARD),
    "missing shard": (lambda r: (r / SHARD).unlink(), SHARD),
    "duplicate key in a shard": (with_header(doubled_key), SHARD),
    "shard of another dtype": (with_header(lambda h: [v.update(dtype="I8") for v in h.values()]), SHARD),
    "shard header of 2**62 bytes": (shard(lambda d: struct.pack("<Q", 1 << 62) + d[8:]), SHARD),
    "shard claims 2**62 elements": (with_header(lambda h: next(iter(h.values())).update(shape=[1 << 62])), SHARD),
    "threads of text": (manifest(lambda m: m.update(threads="all")), f"{MANIFEST}: threads"),
    "info is a list": (manifest(lambda m: m.update(info=[])), f"{MANIFEST}: info"),
    "stored is a truth value": (manifest(lambda m: m.update(stored=True)), f"{MANIFEST}: stored"),
    "manifest names a key twice": (
        lambda r: replace(r / MANIFEST, b'"format":2', b'"format":2,"format":2'),
        f"{MANIFEST}: not JSON (key 'format' occurs twice)",
    ),
    "call names a key twice": (
        lambda r: replace_calls(r, with_line_key_twice((r / CALLS).read_bytes())),
        f"{CALLS}:1: not JSON (key 'id' occurs twice)",
    ),
    "newer format": (manifest(lambda m: m.update(format=7)), "is format 7, this toolkit reads 2; upgrade enablekit"),
    "no format": (manifest(lambda m: m.pop("format")), "format"),
    "unknown state": (manifest(lambda m: m.update(state="fine")), "state"),
    "manifest is a list": (lambda r: (r / MANIFEST).write_text("[]"), MANIFEST),
    "manifest is not JSON": (lambda r: (r / MANIFEST).write_text("{"), MANIFEST),
    "manifest nests deeply": (lambda r: (r / MANIFEST).write_text("[" * 100_000), MANIFEST),
    "manifest without files": (manifest(lambda m: m.pop("files")), MANIFEST),
    "path outside the trace": (manifest(lambda m: m["files"].update({"../x.safetensors": 1})), MANIFEST),
    "size is text": (manifest(lambda m: m["files"].update({SHARD: "1"})), MANIFEST),
    "missing calls": (lambda r: (r / CALLS).unlink(), CALLS),
    "truncated calls": (lambda r: os.truncate(r / CALLS, 100), CALLS),
    "flipped byte in a call": (lambda r: flip(r / CALLS, 50), f"{CALLS}:1"),
    "valid JSON with another number": (lambda r: replace(r / CALLS, b'"step":0', b'"step":1'), f"{CALLS}:1"),
    "line of 8 GB": (oversized_line, f"{CALLS}:1"),
    "call is a list": (lambda r: replace_calls(r, encode_line([])), f"{CALLS}:1"),
    "call id is text": (calls(lambda c: c.update(id="0")), f"{CALLS}:1: id"),
    "call id is a truth value": (calls(lambda c: c.update(id=True)), f"{CALLS}:1: id"),
    "call without header": (calls(lambda c: c.pop("header")), f"{CALLS}:1: header"),
    "header without groups": (calls(lambda c: c["header"].pop("groups")), f"{CALLS}:1"),
    "header without blobs": (calls(lambda c: c["header"].pop("contents")), f"{CALLS}:1"),
    "blob that is in no shard": (calls(lambda c: c["header"].update(contents=["0" * 64] * 2)), f"{CALLS}:1"),
    "blob key is a path": (calls(lambda c: c["header"].update(contents=["../../etc/passwd"] * 2)), f"{CALLS}:1"),
    "blob key is a number": (calls(lambda c: c["header"].update(contents=[5, 5])), f"{CALLS}:1"),
    "span longer than its blob": (calls(lambda c: c["header"]["groups"][0].update(nbytes=1 << 40)), SHARD),
    "span shorter than its blob": (calls(lambda c: c["header"]["groups"][0].update(nbytes=20)), f"{CALLS}:1"),
    "negative span": (calls(lambda c: c["header"]["groups"][0].update(nbytes=-4)), f"{CALLS}:1"),
    "tensor outside its span": (calls(lambda c: c["header"]["tensors"][0].update(shape=[9, 9])), f"{CALLS}:1"),
    "rng without blob": (calls(lambda c: c.update(rng={"device": "cpu"})), f"{CALLS}:1: rng: blob"),
    "missing signatures": (lambda r: (r / SIGNATURES).unlink(), SIGNATURES),
    "calls of a signature": (signatures(lambda s: s.update(calls=None)), SIGNATURES),
    "steps of a signature": (signatures(lambda s: s.update(steps=[[1]])), SIGNATURES),
    "samples of a signature": (signatures(lambda s: s.update(samples=["a"])), SIGNATURES),
}


def with_line_key_twice(data):
    text = data.splitlines()[0].rpartition(b" ")[0].replace(b'"id":0', b'"id":0,"id":0')
    return text + f" {zlib.crc32(text):08x}\n".encode()


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def replace(path, old, new):
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))


def replace_calls(root, data):
    (root / CALLS).write_bytes(data)
    fix_size(root, CALLS)


@pytest.mark.parametrize(("damage", "named"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_one_line_that_names_file_and_field(trace_path, damage, named):
    read_everything(trace_path)
    damage(trace_path)
    with pytest.raises(TraceError) as error:
        read_everything(trace_path)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_an_operator_name_is_looked_up_and_never_evaluated(trace_path, tmp_path):
    calls(lambda c: c.update(overload=f"__import__('pathlib').Path({str(tmp_path / 'pwned')!r}).touch()"))(trace_path)
    assert verify(Trace.open(trace_path)).not_comparable == {"not an ATen operator": 1}
    calls(lambda c: c.update(overload="aten::__import__('os')"))(trace_path)
    with pytest.raises(TraceError, match=r"calls-00000.jsonl:1: overload"):
        verify(Trace.open(trace_path))
    assert not (tmp_path / "pwned").exists()


def test_arguments_of_another_operator_are_refused(trace_path):
    calls(lambda c: c.update(overload="aten::mm"))(trace_path)
    with pytest.raises(TraceError, match=r"header.tree names"):
        verify(Trace.open(trace_path))


def test_no_trace_here(tmp_path):
    with pytest.raises(TraceError, match="enable capture MODEL"):
        Trace.open(tmp_path / "none.trace")


def test_a_copy_is_a_trace(trace_path, tmp_path):
    shutil.copytree(trace_path, tmp_path / "ünïcode dir")
    assert verify(Trace.open(tmp_path / "ünïcode dir")).exact == 2


@dataclass
class Child:
    path: Path
    names: frozenset[str] = frozenset()


@dataclass
class Parent:
    JSON = ("children", "count")
    children: dict[int, Child]
    secret: list[int] = field(default_factory=list)

    @property
    def count(self):
        return len(self.children)


def test_a_dataclass_is_json_by_its_fields_or_by_what_it_lists():
    parent = Parent({3: Child(Path("a/b"), frozenset({"y", "x"}))}, [1])
    assert jsonable((parent, None)) == [{"children": {"3": {"path": "a/b", "names": ["x", "y"]}}, "count": 1}, None]
