"""Which values calls read, make and write: by identity, with views, writes in place and what lives on."""

import json
import weakref

import pytest
import torch

from capture import Recorder
from capture.session import capture_model
from capture.targets import load_target
from traces import Trace, TraceError, UserError, verify
from traces.format import DATAFLOW, write_durably


def flow_of(tmp_path, program, **limits):
    path = tmp_path / "x.trace"
    with Recorder(path, dataflow=True, **limits) as recorder:
        alive = program()
    trace = Trace.open(path)
    assert not recorder.errors and verify(trace).passed
    return trace, trace.dataflow, alive


def calls_of(flow, base):
    return [call for call in flow.calls if call.overload.partition(".")[0] == f"aten::{base}"]


def test_each_value_is_made_once_and_read_by_its_number(tmp_path):
    x = torch.randn(3, 4)

    def program():
        a = x * 2
        b = a.t()
        return torch.exp(b) + a.t()

    trace, flow, _ = flow_of(tmp_path, program)
    (mul,), (first, second), (exp,), (add,) = (calls_of(flow, base) for base in ("mul", "t", "exp", "add"))
    assert mul.reads[0] in flow.sources and first.reads == list(mul.results)
    assert first.results == second.results  # the same view is the same value
    assert exp.reads == list(first.results) and add.reads == [*exp.results, *first.results]
    assert flow.values[first.results[0]].memory == flow.values[mul.results[0]].memory
    assert flow.values[first.results[0]].stride == (1, 4)
    stored = trace.record(add.stored, "here")
    assert stored.overload == "aten::add.Tensor" and len(trace.packed(stored).tensors) == 2


def test_a_write_makes_new_values_of_all_in_its_memory(tmp_path):
    def program():
        x = torch.ones(4, 4)
        top = x[0]
        before = top.exp()
        x.mul_(3)
        return before, top.exp()

    _, flow, _ = flow_of(tmp_path, program)
    (write,), (before, after) = calls_of(flow, "mul_"), calls_of(flow, "exp")
    assert write.writes == tuple(write.reads) and write.results != write.writes
    assert before.reads != after.reads  # the same tensor of Python, another value
    memory = {flow.values[v].memory for v in (*before.reads, *after.reads, *write.reads)}
    assert len(memory) == 1


def test_equal_memory_at_another_time_is_another_value(tmp_path):
    def program():
        for _ in range(3):
            x = torch.randn(64) + 1  # freed, and the next one lies at the same address
            del x

    _, flow, _ = flow_of(tmp_path, program)
    made = [call.results[0] for call in calls_of(flow, "add")]
    assert len(set(made)) == 3 and not flow.kept & set(made)


def test_what_lives_on_is_kept_and_nothing_is_held_alive(tmp_path):
    gone = []

    def program():
        x = torch.randn(5, requires_grad=True)
        y = x * 3
        gone.append(weakref.ref(y))
        y.exp().sum().backward()
        return x

    _, flow, x = flow_of(tmp_path, program)
    assert gone[0]() is None
    (leaf,) = [v for v in calls_of(flow, "mul")[0].reads if v in flow.kept]
    gradients = [call.results[0] for call in calls_of(flow, "mul")[1:]]
    assert flow.values[leaf].shape == x.shape and flow.kept & set(gradients)
    assert not flow.kept & set(calls_of(flow, "exp")[0].results)


def test_only_the_first_step_is_recorded_whole(tmp_path):
    layer = torch.nn.Linear(3, 2)
    with Recorder(tmp_path / "x.trace", dataflow=True) as recorder:
        for _ in range(3):
            for _ in range(4):
                layer(torch.ones(5, 3))
            recorder.step()
    trace = Trace.open(tmp_path / "x.trace")
    assert len(calls_of(trace.dataflow, "addmm")) == 4
    stored = [r for r in trace.calls() if r.overload == "aten::addmm"]
    assert len(stored) == 4 and {r.step for r in stored} == {0}
    assert sum(s.calls for s in trace.signatures.values() if s.overload == "aten::addmm") == 12


def test_losses_are_the_same_to_the_bit(tmp_path):
    small = {"settings": {"n_layer": "1", "n_embd": "32", "n_head": "2", "block_size": "16"}, "batch": 2}
    losses = [
        capture_model(load_target("nanogpt", **small), tmp_path / f"{on}.trace", steps=2, dataflow=on, progress=False)
        for on in (False, True)
    ]
    assert losses[0].losses == losses[1].losses and losses[0].calls == losses[1].calls
    assert not (tmp_path / "False.trace" / DATAFLOW).exists()
    flow = Trace.open(tmp_path / "True.trace").dataflow
    assert {call.phase for call in flow.calls} >= {"forward", "backward", "optimizer"}
    assert flow.as_json() == type(flow).of_json(json.loads(json.dumps(flow.as_json())), "x").as_json()


def test_a_trace_without_dataflow_says_how_to_record_it(tmp_path):
    with Recorder(tmp_path / "x.trace", info={"model": "nanogpt"}):
        torch.ones(3) + 1
    trace = Trace.open(tmp_path / "x.trace")
    with pytest.raises(UserError, match="holds no dataflow; record it: enable capture nanogpt --dataflow --force"):
        _ = trace.dataflow


@pytest.mark.parametrize("limits", [{"phases": ("forward",)}, {"ops": ("aten::mm",)}])
def test_every_call_is_needed(tmp_path, limits):
    with pytest.raises(UserError, match="leave out --dataflow, or --phase and --ops"):
        Recorder(tmp_path / "x.trace", dataflow=True, **limits)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 9}, "is format 9, this toolkit reads 1"),
        ({"kept": [10**6]}, "kept or sources names a value that is not there"),
        ({"values": [["float33", [1], [1], 0]]}, r"values\[0\] is not dtype, shape, stride and memory"),
        ({"calls": [{"overload": "aten::exp"}]}, "not a dataflow"),
        ({"values": 3}, "not a dataflow"),
    ],
)
def test_damaged_dataflow_is_refused(tmp_path, change, told):
    trace, flow, _ = flow_of(tmp_path, lambda: torch.ones(3).exp())
    text = json.dumps({**flow.as_json(), **change}).encode()
    trace.manifest["files"][DATAFLOW] = write_durably(trace.path / DATAFLOW, [text])
    (trace.path / "manifest.json").write_text(json.dumps(trace.manifest))
    with pytest.raises(TraceError, match=told):
        _ = Trace.open(trace.path).dataflow
