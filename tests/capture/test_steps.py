"""Which calls belong to which step: as the program marks its steps, or as its optimizers end them."""

from collections import Counter

import pytest
import torch

from capture import Recorder
from traces import Trace, verify

ITEM, MM, TANH = "aten::_local_scalar_dense", "aten::addmm", "aten::tanh"


class Net:
    """A linear layer and what trains it; batches of other sizes make other signatures."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.layer = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1)

    def train(self, rows=4, batch=None):
        self.optimizer.zero_grad()
        loss = self.layer(torch.ones(rows, 3) if batch is None else batch).sum()
        loss.backward()
        self.optimizer.step()
        return loss

    def evaluate(self):
        with torch.no_grad():
            return self.layer(torch.ones(7, 3)).tanh().argmax()


def recorded(path, program, **limits):
    """The trace, and how often each overload was called in each step."""
    with Recorder(path, **limits) as recorder:
        program(recorder)
    trace = Trace.open(path)
    assert not recorder.errors and verify(trace).passed
    found = Counter()
    for s in trace.signatures.values():
        assert sum(calls * (last - first + 1) for first, last, calls in s.steps) == s.calls == sum(s.phases.values())
        for first, last, calls in s.steps:
            found.update({(step, s.overload): calls for step in range(first, last + 1)})
    for call in trace.calls():
        assert found[call.step, call.overload]
        assert call.id in trace.signatures[call.signature].samples
    return trace, found


def by_step(found, overload):
    return [found[step, overload] for step in range(max((s for s, _ in found), default=-1) + 1)]


def reads_its_loss(recorder, mark=True):
    net = Net()
    for rows in range(4, 8):
        loss = net.train(rows)
        loss.item()
        if mark:
            recorder.step()


@pytest.mark.parametrize("skip", [0, 1])
@pytest.mark.parametrize("steps, expected", [(None, 4), (1, 1), (2, 2), (9, 4)])
def test_marked_steps_that_read_the_loss_after_the_optimizer(tmp_path, steps, skip, expected):
    trace, found = recorded(tmp_path / "a.trace", reads_its_loss, steps=steps, skip_steps=skip)
    count = min(expected, 4 - skip)
    assert trace.manifest["steps"] == count and trace.manifest["ended_by"] == "marks"
    assert by_step(found, ITEM) == by_step(found, MM) == [1] * count
    rows = [s.arguments for s in trace.signatures.values() if s.overload == MM]
    assert [f"mat1=float32[{4 + skip + i}, 3]" in text for i, text in enumerate(rows)] == [True] * count


@pytest.mark.parametrize("skip", [0, 1])
@pytest.mark.parametrize("steps, expected", [(None, 4), (1, 1), (2, 2), (9, 4)])
def test_steps_that_an_optimizer_ends(tmp_path, steps, skip, expected):
    def program(recorder):
        reads_its_loss(recorder, mark=False)

    trace, found = recorded(tmp_path / "a.trace", program, steps=steps, skip_steps=skip)
    count = min(expected, 4 - skip)
    assert trace.manifest["steps"] == count and trace.manifest["ended_by"] == "optimizer"
    assert by_step(found, ITEM) == by_step(found, MM) == [1] * count


def adversarial(recorder, mark=True):
    """Two optimizers make a step each, the first of them twice, in each of three steps."""
    one, other = Net(), Net(1)
    for rows in (4, 5, 6):
        one.train(rows)
        one.train(rows)
        other.train(rows + 10).item()
        if mark:
            recorder.step()


@pytest.mark.parametrize(
    "steps, skip, rows", [(None, 0, (4, 5, 6)), (1, 0, (4,)), (2, 0, (4, 5)), (1, 1, (5,)), (1, 2, (6,))]
)
def test_several_optimizers_in_a_marked_step(tmp_path, steps, skip, rows):
    trace, found = recorded(tmp_path / "a.trace", adversarial, steps=steps, skip_steps=skip)
    assert trace.manifest["steps"] == len(rows)
    assert by_step(found, MM) == [3] * len(rows) and by_step(found, ITEM) == [1] * len(rows)
    texts = [s.arguments for s in trace.signatures.values() if s.overload == MM]
    assert [
        f"mat1=float32[{n}, 3]" in text for n, text in zip(sum(((r, r + 10) for r in rows), ()), texts, strict=True)
    ]


def of_sizes(*rows):
    """A program of unmarked steps, with batches of so many rows that are there before it is recorded."""
    batches = [torch.rand(n, 3) for n in rows]

    def program(recorder):
        net = Net()
        for batch in batches:
            net.train(batch=batch)

    return program


def test_what_was_recorded_in_doubt_leaves_no_bytes(tmp_path):
    one, _ = recorded(tmp_path / "a.trace", of_sizes(4), steps=1)
    three, found = recorded(tmp_path / "b.trace", of_sizes(4, 5000, 6000), steps=1)
    assert by_step(found, MM) == [1]
    for name in ("calls", "stored", "contents_bytes", "levels", "steps"):
        assert one.manifest[name] == three.manifest[name], name
    assert one.manifest["files"].keys() == three.manifest["files"].keys()
    assert sum(p.stat().st_size for p in three.path.iterdir()) < 1.1 * sum(p.stat().st_size for p in one.path.iterdir())
    assert three.manifest["skipped"]["in other steps or phases"] > 20


def test_doubtful_contents_take_nothing_from_the_others(tmp_path):
    def levels(name, steps, **limits):
        batches = [torch.rand(2000 + i, 3) for i in range(steps)]

        def program(recorder):
            net = Net()
            for i, batch in enumerate(batches):
                net.train(batch=batch)
                if i:
                    batch[:500].cos()  # an operator that has nothing yet

        trace, _ = recorded(tmp_path / name, program, steps=1, **limits)
        return trace.manifest["contents_bytes"], {r.overload: r.level for r in trace.calls()}

    nbytes, alone = levels("a.trace", 1)
    assert levels("b.trace", 3, max_bytes=nbytes) == (nbytes, alone) and set(alone.values()) == {"full"}


@pytest.mark.parametrize("mark", [True, False])
def test_an_evaluation_between_steps_is_none(tmp_path, mark):
    def program(recorder):
        net = Net()
        for _ in range(3):
            net.train()
            net.evaluate()
            if mark:
                recorder.step()

    trace, found = recorded(tmp_path / "a.trace", program)
    assert trace.manifest["steps"] == 3
    assert by_step(found, TANH) == [1, 1, 1] and by_step(found, MM) == [2, 2, 2]


def test_a_program_that_begins_to_mark_late(tmp_path):
    """What optimizers had ended before was no end."""

    def program(recorder):
        net = Net()
        for step in range(5):
            net.train()
            if step >= 2:
                recorder.step()

    trace, found = recorded(tmp_path / "a.trace", program)
    assert trace.manifest["steps"] == 3 and by_step(found, MM) == [3, 1, 1]


def test_a_filter_of_operators_does_not_hide_where_steps_end(tmp_path):
    trace, found = recorded(tmp_path / "a.trace", lambda r: reads_its_loss(r, mark=False), steps=2, ops=("aten::sum",))
    assert trace.manifest["steps"] == 2 and by_step(found, "aten::sum") == [1, 1]


def test_a_program_without_an_optimizer_is_one_step(tmp_path):
    trace, _ = recorded(tmp_path / "a.trace", lambda recorder: torch.ones(3).exp().sum().item(), steps=1)
    assert trace.manifest["steps"] == 1 and trace.manifest["ended_by"] is None


def test_skipped_steps_that_are_all_there_were_are_told(tmp_path):
    told = "nothing was recorded: skip_steps is 5, and the program ended 4 steps"
    with pytest.warns(RuntimeWarning, match=told), Recorder(tmp_path / "a.trace", skip_steps=5) as recorder:
        reads_its_loss(recorder)
