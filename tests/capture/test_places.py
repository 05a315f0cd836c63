"""A trace says where each call ran, and work of the host beside a device is not counted as the device's."""

import json

import pytest
import torch
from shared import packaged

from capture import Recorder, sim
from enable.cli import run
from enable.cover.cost import uses
from enable.cover.coverage import host_calls, read_calls
from enable.trace_views.tables import trace_summary, trace_tables
from traces import Trace, verify
from traces.format import CALLS, MANIFEST, SIGNATURES, decode_line, encode_line


def steps(count):
    """AdamW keeps a counter of steps on the host for each parameter; here one is added to four of them a step."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).to("sim")
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    x = torch.ones(2, 4, device="sim")
    for _ in range(count):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("places") / "a.trace"
    sim.install()
    with sim.executing(sim.on_cpu), Recorder(path, info={"model": "two", "device": "sim"}) as recorder:
        for _ in steps(4):  # more than it takes to be in a steady state
            recorder.step()
        torch.zeros((), device="sim").add_(1)  # looks like a counter's
    assert not recorder.errors
    return Trace.open(path)


def test_each_call_says_where_it_ran(trace):
    assert {s.device for s in trace.signatures.values()} == {"sim:0", "cpu"}
    calls = {r.id: r.device for r in trace.calls()}
    assert all(calls[i] == s.device for s in trace.signatures.values() for i in s.samples)
    counters = [s for s in trace.signatures.values() if s.overload == "aten::add_.Tensor"]
    assert sorted((s.device, s.calls) for s in counters if "self=float32[]," in s.arguments) == [
        ("cpu", 4 * 4),
        ("sim:0", 1),
    ]
    assert verify(trace).passed


def test_what_the_host_does_is_named_and_not_counted(trace):
    assert host_calls(trace)["aten::add_.Tensor"] == 16
    summary = trace_summary(trace)
    row = next(r for r in summary["rows"] if r["overload"] == "aten::add_.Tensor")
    asked = sum(s.calls for s in trace.asked if s.overload == "aten::add_.Tensor")
    assert (row["calls"], row["host"]) == (asked, 16) and summary["host"]["aten::add_.Tensor"] == 16
    assert summary["calls"] == sum(s.calls for s in trace.asked) < sum(summary["devices"].values())
    assert "not asked of the device" in trace_tables(summary) and "aten::add_.Tensor 16" in trace_tables(summary)
    seen = []
    read_calls(trace, lambda record, case: seen.append(record.device))
    assert set(seen) == {"sim:0"}
    assert "aten::add_.Tensor" in uses(trace)


def test_coverage_names_the_work_of_the_host(trace, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ENABLE_WORKSPACE", str(tmp_path))
    assert packaged() is not None
    assert run(["coverage", str(trace.path), "--of", str(trace.path), "--json"]) in (0, None)
    found = json.loads(capsys.readouterr().out)
    assert found["host"]["aten::add_.Tensor"] == 16
    row = next(r for r in found["rows"] if r["overload"] == "aten::add_.Tensor")
    assert row["calls"] == sum(s.calls for s in trace.asked if s.overload == "aten::add_.Tensor")


def test_a_trace_of_the_host_alone_counts_all(tmp_path):
    with Recorder(tmp_path / "a.trace"):
        torch.ones(2) + 1
    trace = Trace.open(tmp_path / "a.trace")
    assert trace.on_host == frozenset() and len(trace.asked) == len(trace.signatures) == 2
    assert trace_summary(trace)["devices"] == {"cpu": 2} and trace_summary(trace)["host"] == {}


def test_a_trace_of_an_earlier_version_is_read(trace, tmp_path):
    """It says of no call where it ran, or whether gradients were on."""
    for source in trace.path.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
    lines = [decode_line(line, "") for line in (tmp_path / CALLS).read_bytes().splitlines(keepends=True)]
    old = [{k: v for k, v in line.items() if k not in ("device", "grad")} for line in lines]
    (tmp_path / CALLS).write_bytes(b"".join(map(encode_line, old)))
    signatures = json.loads((tmp_path / SIGNATURES).read_text())
    for signature in signatures.values():
        del signature["device"]
    (tmp_path / SIGNATURES).write_text(json.dumps(signatures))
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["files"] |= {name: (tmp_path / name).stat().st_size for name in (CALLS, SIGNATURES)}
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    earlier = Trace.open(tmp_path)
    assert earlier.on_host == frozenset() and {r.grad for r in earlier.calls()} == {None}
    assert trace_summary(earlier)["calls"] == sum(s.calls for s in trace.signatures.values())
    assert verify(earlier).passed
