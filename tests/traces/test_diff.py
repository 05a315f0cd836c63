"""What differs between two recordings."""

import pytest
import torch

from capture import Recorder
from traces import Trace
from traces.diff import Change, diff


def record(path, rows, **info):
    x = torch.ones(rows, 3)
    with Recorder(path, info={"model": "test", "settings": info}):
        for _ in range(2):
            torch.relu(x)
        torch.sigmoid(x) if rows == 2 else torch.tanh(x)
    return Trace.open(path)


@pytest.fixture
def before(tmp_path):
    return record(tmp_path / "a.trace", 2, lr=0.1, width=3)


def test_a_trace_equals_itself(before, tmp_path):
    found = diff(before, record(tmp_path / "b.trace", 2, lr=0.1, width=3))
    assert found.equal and found.same == 2 and not found.settings and not found.overloads


def test_new_gone_and_changed_signatures(before, tmp_path):
    after = record(tmp_path / "b.trace", 4, lr=0.2, width=3)
    found = diff(before, after)
    shape = ["(self=float32[2, 3])", "(self=float32[4, 3])"]
    assert found.changes == [
        Change("aten::relu", shape[0], 2, 0),
        Change("aten::relu", shape[1], 0, 2),
        Change("aten::sigmoid", shape[0], 1, 0),
        Change("aten::tanh", shape[1], 0, 1),
    ]
    assert [c.kind for c in found.changes] == ["gone", "new", "gone", "new"]
    assert found.overloads == [Change("aten::sigmoid", "", 1, 0), Change("aten::tanh", "", 0, 1)]
    assert found.settings == {"setting lr": (0.1, 0.2)} and found.same == 0
    assert all(v["torch"] == torch.__version__ and v["model"] == "test" for v in found.versions)


def test_counts_alone(before, tmp_path):
    with Recorder(tmp_path / "b.trace", info={"model": "test"}):
        for fn in (torch.relu, torch.sigmoid, torch.sigmoid, torch.relu):
            fn(torch.ones(2, 3))
    found = diff(before, Trace.open(tmp_path / "b.trace"))
    assert [(c.overload, c.before, c.after, c.kind) for c in found.changes if c.before] == [
        ("aten::sigmoid", 1, 2, "changed")
    ]
