import json
import os

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from enable.cli import app
from traces import Trace, TraceError, TraceWriter
from traces.audit import CHUNK, _pieces, _windows, audit
from traces.fingerprint import results
from traces.overloads import bind, resolve
from traces.synthesis import pseudonyms, summarise
from traces.values import pack
from traces.writer import CallSite

torch.manual_seed(0)
WEIGHT, TOKENS = torch.randn(3000, 8), torch.randint(0, 3000, (4, 33))


def record(path, values, spoil=None):
    """One embedding; values: "full" or as a private recorder would store it. spoil: changes header, results, rng."""
    op = resolve("aten::embedding")
    arguments = bind(op, (WEIGHT, TOKENS), {})
    writer = TraceWriter(path, {"model": "secret project", "limits": {"values": values}})
    packed = pack(arguments)
    header, rng = writer.store(packed) if values == "full" else packed.header(), None
    if values != "full":
        hidden = pseudonyms(TOKENS.reshape(-1).numpy(), b"key")
        key = writer.add_blob(hidden.astype("<u2").tobytes())
        stats = summarise(WEIGHT.reshape(-1), WEIGHT.numel(), private=True)
        header["contents"] = [
            {"level": "seeded", "stats": stats, "seed": 1},
            {"level": "seeded", "ids": key, "width": 2, "low": 0, "count": TOKENS.numel()},
        ]
    skip = frozenset() if values == "full" else frozenset(("return",))
    found = results(op, arguments, op(WEIGHT, TOKENS), skip)
    if spoil is not None:
        rng = spoil(writer, header, found)
    signature = writer.signature("aten::embedding", "compute", "()")
    signature.count("forward", 0)
    writer.add_call(signature, CallSite(0, 0, "forward", "patients.embedding"), header, found, rng)
    writer.close()
    return Trace.open(path)


@pytest.fixture
def full(tmp_path):
    return record(tmp_path / "full.trace", "full")


def test_a_private_trace_passes(tmp_path, full):
    found = audit(record(tmp_path / "private.trace", "seeded"), full)
    assert found.violations == []
    assert found.passed
    assert found.windows > 3000 * 8 * 4
    assert found.texts["modules"] == ["patients.embedding"]
    assert found.texts["phases"] == ["forward"]
    assert "info.model = secret project" in found.texts["manifest"]


def test_a_full_trace_holds_user_bytes(full):
    (line,) = audit(full).violations
    assert "it holds user bytes" in line


def keep_weight(writer, header, found):
    header["contents"][0] = writer.add_blob(WEIGHT.numpy().tobytes())


def keep_rows(writer, header, found):
    key = writer.add_blob(WEIGHT[:1].numpy().tobytes())
    stats = {"min": 0.0, "max": 1.0}
    spec = {"level": "rows", "rows": writer.add_blob(bytes(8)), "blob": key, "count": 1, "stats": stats, "seed": 1}
    header["contents"][0] = spec


def keep_state(writer, header, found):
    state = bytes(torch.get_rng_state().numpy().data)
    return {"device": "cpu", "blob": writer.add_blob(state), "nbytes": len(state)}


SPOILT = {
    "a weight": (keep_weight, "header.contents[0] holds bytes"),
    "rows of it": (keep_rows, "header.contents[0] holds bytes"),
    "the state of a generator": (keep_state, "rng holds the state"),
    "a blob of nobody": (lambda w, h, f: w.add_blob(b"x" * 99) and None, "is not pseudonymised ids"),
    "a hash": (lambda w, h, f: f["return"].update(hash="0" * 64), "results.return holds hash"),
    "moments": (lambda w, h, f: f["return"].update(moments=[]), "results.return holds moments"),
    "a number": (lambda w, h, f: f.update(other=[None, {"float": "0x1p+0"}]), "results.other holds a number"),
}


@pytest.mark.parametrize(("spoil", "told"), SPOILT.values(), ids=SPOILT.keys())
def test_what_a_private_trace_must_not_hold(tmp_path, spoil, told):
    violations = audit(record(tmp_path / "private.trace", "seeded", spoil)).violations
    assert any(told in line for line in violations)
    assert all("\n" not in line for line in violations)


def test_others_may_not_enter(tmp_path):
    trace = record(tmp_path / "private.trace", "stats")
    os.chmod(trace.path, 0o750)
    (line,) = audit(trace).violations
    assert "mode 750" in line


def test_files_of_nobody(tmp_path):
    trace = record(tmp_path / "private.trace", "seeded")
    (trace.path / "blobs-00000.safetensors.tmp").write_bytes(b"left behind")
    (trace.path / "blobs-00007.safetensors").write_bytes(b"")
    assert len([line for line in audit(trace).violations if "is no part of the trace" in line]) == 2


@pytest.mark.parametrize("offset", range(8))
def test_bytes_of_the_other_trace_are_found_wherever_they_lie(tmp_path, full, offset):
    trace = record(tmp_path / "private.trace", "seeded")
    leaked = WEIGHT.numpy().tobytes()[1001:1009]
    (trace.path / "note").write_bytes(b"." * offset + leaked)
    assert any(leaked.hex() in line for line in audit(trace, full).violations)
    (trace.path / "note").write_bytes(b"." * offset + leaked[:7])
    assert not any("also lie" in line for line in audit(trace, full).violations)


def test_raw_ids_are_found(tmp_path, full):
    trace = record(tmp_path / "private.trace", "seeded")
    (trace.path / "note").write_bytes(TOKENS.numpy().tobytes())
    assert any("also lie" in line for line in audit(trace, full).violations)


def test_nothing_to_compare_with(tmp_path):
    trace = record(tmp_path / "private.trace", "seeded")
    TraceWriter(tmp_path / "empty.trace").close()
    with pytest.raises(TraceError, match="no tensor contents"):
        audit(trace, Trace.open(tmp_path / "empty.trace"))


def test_windows_that_tell_nothing_are_left_out():
    assert len(_windows(np.full(100, 7, dtype=np.uint8))) == 0
    assert len(_windows(np.array([5, 0, 0], dtype="<i8").view(np.uint8))) == 0
    assert len(_windows(np.array([5, 7], dtype="<i8").view(np.uint8))) == 0  # each window holds one byte of them
    assert len(_windows(np.array([300], dtype="<i8").view(np.uint8))) == 0  # occurs anywhere
    assert len(_windows(np.array([300, 400], dtype="<i8").view(np.uint8))) == 1
    assert len(_windows(np.array([1.5, 2.5], dtype="<f4").view(np.uint8))) == 1


def test_windows_over_the_border_of_two_pieces():
    data = np.random.default_rng(0).integers(1, 256, CHUNK + 100, dtype=np.uint8)
    assert sum(len(_windows(p)) for p in _pieces(data)) == len(data) - 7
    assert list(_pieces(data[:7])) == []
    numbers = np.random.default_rng(0).integers(256, 65536, CHUNK // 8 + 100).astype("<i8") | 0x0101
    numbers = numbers.view(np.uint8)
    assert sum(len(_windows(p)) for p in _pieces(numbers)) == len(numbers) - 15


def test_the_command(tmp_path, full):
    trace = record(tmp_path / "private.trace", "seeded")
    run = CliRunner().invoke
    result = run(app, ["trace", "audit", str(trace.path), "--against", str(full.path)])
    assert result.exit_code == 0, result.output
    assert "patients.embedding" in result.output and "no user bytes found" in result.output
    result = run(app, ["trace", "audit", str(full.path), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["passed"] is False
