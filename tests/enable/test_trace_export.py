"""`enable trace export` to a timeline and to a table, and a trace as a DataFrame."""

import json
import sys

import pytest
import torch

from capture import Recorder
from enable.cli import run
from traces import Trace

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """The path of a trace of two steps of a small net, one module of which has a strange name."""
    path = tmp_path_factory.mktemp("export") / "net.trace"
    inner = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    model = torch.nn.Module()
    model.add_module(HOSTILE, inner)
    model.forward = lambda x: inner(x)
    with Recorder(path, model=model) as recorder:
        for _ in range(2):
            with recorder.phase("forward"):
                loss = model(torch.ones(64, 8)).sum()
            loss.backward()
            recorder.step()
    return path


def exported(net, tmp_path, form, *more):
    out = tmp_path / "out"
    assert run(["trace", "export", str(net), "--format", form, "--out", str(out), *more]) == 0
    return out


def test_a_timeline(net, tmp_path, capsys):
    found = json.loads(exported(net, tmp_path, "chrome").read_text())
    assert "ui.perfetto.dev" in capsys.readouterr().out
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    calls = [s for s in slices if s["cat"] != "around"]
    records = list(Trace.open(net).calls())
    assert [(c["name"], c["args"]["id"]) for c in calls] == [(r.overload, r.id) for r in records]
    assert all(a["ts"] + a["dur"] == pytest.approx(b["ts"]) for a, b in zip(calls, calls[1:], strict=False))
    for call, record in zip(calls, records, strict=True):
        around = [s["name"] for s in slices if s["cat"] == "around" and inside(call, s)]
        assert set(around) == {f"step {record.step}", record.phase, *filter(None, record.module.split("."))}
    assert {HOSTILE, "forward", "backward"} <= {s["name"] for s in slices}
    for a in slices:  # as the viewers ask: of two slices of a track one lies in the other, or they do not meet
        for b in slices:
            met = max(a["ts"], b["ts"]) < min(a["ts"] + a["dur"], b["ts"] + b["dur"]) - 1e-6
            assert not met or inside(a, b) or inside(b, a), (a, b)


def inside(a, b):
    return b["ts"] - 1e-6 <= a["ts"] and a["ts"] + a["dur"] <= b["ts"] + b["dur"] + 1e-6


def test_of_one_operator(net, tmp_path):
    found = json.loads(exported(net, tmp_path, "chrome", "--op", "addmm").read_text())
    calls = [s["name"] for s in found["traceEvents"] if s["ph"] == "X" and s["cat"] != "around"]
    assert set(calls) == {"aten::addmm"}


def test_a_frame(net):
    trace = Trace.open(net)
    frame, records = trace.frame(), list(trace.calls())
    assert frame.id.tolist() == [r.id for r in records] and frame.bytes.sum() == sum(r.nbytes for r in records)
    row = frame[frame.overload == "aten::addmm"].iloc[0]
    assert (row.tensor_dtypes, row.tensor_shapes) == ("float32 float32 float32", "4 64x8 8x4")
    assert (row.calls, row.phase, row.level) == (2, "forward", "full") and row.module.endswith("0")
    counted = frame.drop_duplicates("signature").calls.sum()
    assert counted == sum(s.calls for s in trace.signatures.values() if s.samples)


def test_an_empty_trace_has_the_same_columns(net, tmp_path):
    with pytest.warns(RuntimeWarning, match="nothing was recorded"), Recorder(tmp_path / "empty.trace"):
        pass
    empty, full = Trace.open(tmp_path / "empty.trace").frame(), Trace.open(net).frame()
    assert not len(empty) and empty.dtypes.equals(full.dtypes)


def test_a_table(net, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert pandas.read_parquet(exported(net, tmp_path, "parquet")).equals(Trace.open(net).frame())


@pytest.mark.parametrize("form", ["chrome", "parquet"])
def test_what_cannot_be_written(net, tmp_path, monkeypatch, capsys, form):
    if form == "parquet":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    words = ["trace", "export", str(net), "--format", form, "--out"]
    assert run([*words, str(tmp_path / "no" / "out")]) == 2
    said = capsys.readouterr().err
    assert ("pip install 'enablekit[parquet]'" if form == "parquet" else "cannot be written") in said
    (tmp_path / "taken").write_text("kept")
    assert run([*words, str(tmp_path / "taken")]) == 2 and "--force" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "kept"
