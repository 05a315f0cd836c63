"""Acceptance test 20 without its times, which benchmarks/capture.py takes: what the steady state stores, counts, names.

From the third equal step on the recorder does little but count, without a lock and without following modules.
"""

import threading
from collections import Counter
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from capture import Recorder
from capture.signatures import describe
from capture.targets import load_target
from traces import Trace, verify
from traces.overloads import bind, name_of

STEPS = 6
SMALL = {"n_layer": "2", "n_head": "2", "n_embd": "16", "block_size": "8"}
TABLES = {"tables": "2", "rows": "50", "dim": "4"}
TARGETS = {
    "nanogpt": lambda: load_target("nanogpt", SMALL, batch=2),
    "nanogpt-foreach": lambda: load_target("nanogpt", SMALL, batch=2, optimizer="adamw-foreach"),
    "nanogpt-dropout": lambda: load_target("nanogpt", {**SMALL, "dropout": "0.2"}, batch=2, optimizer="adamw-fused"),
    "dlrm-adagrad": lambda: load_target("dlrm", TABLES, batch=4, optimizer="adagrad"),
}


class Census(TorchDispatchMode):
    """Counts calls by operator and arguments, by step and by phase, as plainly as can be."""

    def __init__(self):
        super().__init__()
        self.step, self.current = 0, ""
        self.steps, self.phases = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "aten":
            signature = name_of(func), describe(bind(func, args, kwargs or {}))
            self.steps[*signature, self.step] += 1
            self.phases[*signature, self.current] += 1
        return func(*args, **(kwargs or {}))

    @contextmanager
    def phase(self, name):
        before, self.current = self.current, name
        yield
        self.current = before


def by_step(trace):
    """What a census would have counted."""
    return {
        (s.overload, s.arguments, step): calls
        for s in trace.signatures.values()
        for first, last, calls in s.steps
        for step in range(first, last + 1)
    }


def by_phase(trace):
    return {(s.overload, s.arguments, p): calls for s in trace.signatures.values() for p, calls in s.phases.items()}


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS.keys())
def test_20_equal_steps_are_counted_exactly_and_not_stored(tmp_path, make):
    training, held = make().training, []
    batches = [next(training.batches)] * STEPS  # another batch has sparse gradients of other sizes
    with Census() as census:
        for census.step, batch in enumerate(batches):
            training.step(batch, census.phase)
    training = make().training
    with Recorder(tmp_path / "a.trace", model=training.model) as recorder:
        for batch in batches:
            training.step(batch, recorder.phase)
            recorder.step()
            held.append(recorder.contents_bytes)
    trace = Trace.open(tmp_path / "a.trace")
    assert by_step(trace) == census.steps
    assert by_phase(trace) == census.phases
    assert trace.manifest["calls"] == sum(census.steps.values())
    assert {record.step for record in trace.calls()} <= {0, 1}
    assert held[1:] == held[1:2] * (STEPS - 1)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_20_unequal_steps_are_counted_exactly(tmp_path):
    """In runs of equal ones and alone; cos is called in two phases, and of nested tensors, whose calls have no key."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])

    def work(mode, times, step):
        x = torch.ones(3, requires_grad=True)
        for _ in range(times):
            x.detach().cos()
        with mode.phase("backward"):
            x.sin().sum().backward()
        if step % 3 == 2:
            nested.cos()

    turns = [2, 2, 2, 2, 2, 1, 1, 3, 0, 0, 2, 2, 2]
    with Census() as census:
        for census.step, times in enumerate(turns):
            work(census, times, census.step)
    with Recorder(tmp_path / "a.trace") as recorder:
        for step, times in enumerate(turns):
            work(recorder, times, step)
            recorder.step()
    assert not recorder.errors
    trace = Trace.open(tmp_path / "a.trace")
    assert by_step(trace) == census.steps
    phases = by_phase(trace)
    assert sum(phases.values()) == sum(census.steps.values())
    of_cos = {p: n for (overload, arguments, p), n in phases.items() if overload == "aten::cos" and "[3]" in arguments}
    assert of_cos == {"forward": sum(turns), "backward": len(turns)}


def test_20_two_threads_are_counted_exactly(tmp_path):
    """Each runs the same steps beside the other, and one of them also what the other does not."""
    together = threading.Barrier(2, timeout=60)

    def work(recorder, seed):
        layer, x = nn.Linear(16, 16), torch.full((4, 16), float(seed))
        with recorder:
            for _ in range(STEPS):
                for _ in range(50):
                    layer(x).relu().sum().backward()
                    if seed:
                        x.cos()
                if together.wait() == 0:
                    recorder.step()
                together.wait()

    with Recorder(tmp_path / "a.trace") as recorder:
        threads = [threading.Thread(target=work, args=(recorder, seed)) for seed in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not recorder.errors
    trace, counts = Trace.open(tmp_path / "a.trace"), Counter()
    for (overload, _, step), calls in by_step(trace).items():
        counts[overload, step] += calls
    for step in range(STEPS):
        assert [counts[f"aten::{name}", step] for name in ("addmm", "relu", "threshold_backward")] == [100] * 3
        assert counts["aten::cos", step] == 50
    records = list(trace.calls())
    assert {record.step for record in records} <= {0, 1}
    assert len({record.seq for record in records}) == len(records)
    assert verify(trace).passed


class Net(nn.Module):
    """Takes another branch once it is told to."""

    def __init__(self):
        super().__init__()
        self.always, self.late, self.branch = nn.Linear(4, 4), nn.Sequential(nn.Softplus()), False

    def forward(self, x):
        x = self.always(x)
        return self.late(x) if self.branch else x


def test_20_what_comes_late_is_stored_with_its_module_and_counted(tmp_path):
    """When nothing new is expected modules are not followed by hooks but found by the frames of the program."""
    model, x = Net(), torch.ones(2, 4)
    with Recorder(tmp_path / "a.trace", model=model) as recorder:
        for step in range(10):
            model.branch = step >= 5
            for _ in range(2):
                model(x).sum().backward()
            recorder.step()
    trace = Trace.open(tmp_path / "a.trace")
    steps = {s.overload: s.steps for s in trace.signatures.values()}
    assert steps["aten::softplus"] == steps["aten::softplus_backward"] == ((5, 9, 2),)
    assert steps["aten::addmm"] == ((0, 9, 2),)
    late = {r.overload: r for r in trace.calls() if r.step == 5}
    assert (late["aten::softplus"].module, late["aten::softplus"].phase) == ("late.0", "forward")
    assert late["aten::softplus_backward"].phase == "backward"
    assert {r.step for r in trace.calls()} == {0, 5}
    assert verify(trace).passed


def test_20_a_phase_that_comes_late_is_counted(tmp_path):
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    with Recorder(tmp_path / "a.trace", model=model) as recorder:
        for step in range(STEPS):
            model(x)
            if step == 4:
                with recorder.phase("warm"):
                    for _ in range(3):
                        model(x)
            recorder.step()
    (found,) = [s for s in Trace.open(tmp_path / "a.trace").signatures.values() if s.overload == "aten::addmm"]
    assert found.phases == {"forward": STEPS, "warm": 3}
    assert found.steps == ((0, 3, 1), (4, 4, 4), (5, 5, 1))
