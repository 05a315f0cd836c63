"""Budgets: what is stored of calls that do not fit, and that nobody starves. Acceptance tests 13 and 14."""

import resource
from collections import Counter

import pytest
import torch
import torch.nn.functional as F

from capture import Recorder
from capture.budget import BlobBudget
from capture.limits import Limits, parse_size
from models import dlrm, nanogpt
from traces import Trace, UserError, verify
from traces.values import unpack


def bytes_of(path):
    return sum(p.stat().st_size for p in path.glob("blobs-*"))


def small_gpt(**settings):
    return nanogpt.build(nanogpt.Config(**{"n_layer": 2, "n_embd": 64, "batch": 16, **settings}))


def test_13_a_budget_holds_and_every_signature_is_there(tmp_path):
    limit = 1 << 20
    training = small_gpt()
    batch = next(training.batches)
    with Recorder(tmp_path / "all.trace") as recorder:
        training.step(batch, recorder.phase)
    training = small_gpt()
    with Recorder(tmp_path / "some.trace", max_bytes=limit) as recorder:
        training.step(batch, recorder.phase)
    everything, some = Trace.open(tmp_path / "all.trace"), Trace.open(tmp_path / "some.trace")
    assert bytes_of(everything.path) > 4 * limit
    assert bytes_of(some.path) <= 1.1 * limit  # paddings and headers
    assert some.signatures.keys() == everything.signatures.keys()
    assert {r.signature for r in some.calls()} == {r.signature for r in everything.calls()}
    assert set(some.manifest["levels"]) == {"full", "seeded"}
    report = verify(some)
    assert not report.mismatches and report.synthesised > 10


def test_13_memory_is_bounded_by_the_queue(tmp_path):
    x = torch.rand(1 << 26)  # 256 MiB
    x.exp_()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Recorder(tmp_path / "a.trace", queue_bytes=16 << 20):
        x.exp_()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert bytes_of(tmp_path / "a.trace") > 1 << 28
    assert grown < 96 << 20


def test_signatures_are_counted_beyond_their_limit(tmp_path):
    with Recorder(tmp_path / "a.trace", max_signatures=2) as recorder:
        for size in (1, 2, 3):
            torch.ones(size).exp()  # two signatures: `ones` fills memory that it has
    trace = Trace.open(tmp_path / "a.trace")
    assert len(trace.signatures) == 2
    assert sum(recorder.skipped.values()) == 6 - sum(s.calls for s in trace.signatures.values())
    assert all("after 2 signatures" in reason for reason in recorder.skipped)


def test_no_operator_starves():
    budget = BlobBudget(100, large=1)
    for i in range(10):
        assert budget.admit("mm", {f"mm{i}": 10}) == []
    given_up = [budget.admit("add", {f"add{i}": 10}) for i in range(6)]
    assert given_up[:5] == [["mm9"], ["mm8"], ["mm7"], ["mm6"], ["mm5"]][: len(given_up[:5])] or given_up[4] is None
    owners = Counter(owner for owner, _ in budget._sizes.values())
    assert abs(owners["mm"] - owners["add"]) <= 2
    assert budget.used <= 100
    assert budget.admit("huge", {"huge": 101}) is None


def test_what_was_given_up_for_others_is_drawn(tmp_path):
    with Recorder(tmp_path / "a.trace", max_bytes=3 << 20, per_signature=3):
        for i in range(3):
            torch.full((1 << 18,), float(i)).exp()  # 1 MiB each
        for i in range(3):
            torch.full((1 << 18,), -1.0 - i).sin()
    trace = Trace.open(tmp_path / "a.trace")
    levels = {name: [r.level for r in trace.calls() if r.overload == name] for name in ("aten::exp", "aten::sin")}
    assert levels["aten::exp"][0] == "full" and "seeded" in levels["aten::exp"]
    assert "full" in levels["aten::sin"]
    for record in trace.calls():  # drawn contents have the statistics of those that are gone
        if record.overload == "aten::exp":
            assert bool((unpack(trace.packed(record))["self"] == record.id // 2).all())


def test_indices_and_masks_stay_full(tmp_path):
    weight = torch.rand(100, 512)
    indices, mask = torch.randint(100, (4096,)), torch.rand(4096, 512) > 0.5
    with Recorder(tmp_path / "a.trace", max_bytes=3 << 20):
        F.embedding(indices, weight).masked_fill(mask, 0.0)
    trace = Trace.open(tmp_path / "a.trace")
    embedding, fill = (
        next(r for r in trace.calls() if r.overload == f"aten::{n}") for n in ("embedding", "masked_fill.Scalar")
    )
    assert torch.equal(unpack(trace.packed(embedding))["indices"], indices)
    assert fill.level == "seeded"
    assert torch.equal(unpack(trace.packed(fill))["mask"], mask)


def test_a_table_keeps_the_rows_that_are_touched(tmp_path):
    weight = torch.rand(100_000, 64)  # 25.6 MB
    indices = torch.tensor([[3, 99_999], [-1 + 1, 3]])
    with Recorder(tmp_path / "a.trace"):
        F.embedding(indices, weight)
    trace = Trace.open(tmp_path / "a.trace")
    record = next(r for r in trace.calls() if r.overload == "aten::embedding")
    assert record.level == "rows"
    assert bytes_of(trace.path) < 10_000
    rebuilt = unpack(trace.packed(record))["weight"]
    assert torch.equal(rebuilt[[0, 3, 99_999]], weight[[0, 3, 99_999]])
    assert not torch.equal(rebuilt[1], weight[1])
    assert verify(trace).exact == 1


def test_what_a_backward_operator_takes_is_produced_again(tmp_path):
    x = torch.rand(512, 256, requires_grad=True)
    with Recorder(tmp_path / "a.trace", max_bytes=100_000):
        F.layer_norm(torch.log_softmax(x, 1), (256,)).sum().backward()
    trace = Trace.open(tmp_path / "a.trace")
    record = next(r for r in trace.calls() if r.overload == "aten::native_layer_norm_backward")
    assert record.level == "seeded"
    a = unpack(trace.packed(record))
    mean, variance = a["input"].mean(1, keepdim=True), a["input"].var(1, keepdim=True, correction=0)
    torch.testing.assert_close(a["mean"], mean)
    torch.testing.assert_close(a["rstd"], (variance + 1e-5).rsqrt())
    record = next(r for r in trace.calls() if r.overload == "aten::_log_softmax_backward_data")
    torch.testing.assert_close(unpack(trace.packed(record))["output"].exp().sum(1), torch.ones(512))


def test_gaps_of_a_sparse_span_are_left_out(tmp_path):
    column = torch.rand(1 << 16, 64)[:, 3]
    with Recorder(tmp_path / "a.trace"):
        column.exp()
    trace = Trace.open(tmp_path / "a.trace")
    assert bytes_of(trace.path) < 300_000 < column.untyped_storage().nbytes()
    rebuilt = unpack(trace.packed(next(iter(trace.calls()))))["self"]
    assert rebuilt.stride() == (64,) and torch.equal(rebuilt, column)
    assert verify(trace).exact == 1


def test_filters(tmp_path):
    def run(path, **limits):
        training = small_gpt()
        batches = [next(training.batches) for _ in range(4)]
        with Recorder(path, **limits) as recorder:
            for batch in batches:
                training.step(batch, recorder.phase)
                recorder.step()
        return Trace.open(path)

    phases = run(tmp_path / "a.trace", phases=("optimizer", "clip"))
    assert {p for s in phases.signatures.values() for p in s.phases} == {"optimizer", "clip"}
    ops = run(tmp_path / "b.trace", ops=("aten::mm", "aten::*_backward"))
    names = {s.overload for s in ops.signatures.values()}
    assert "aten::mm" in names and all(n == "aten::mm" or n.endswith("_backward") for n in names)
    steps = run(tmp_path / "c.trace", steps=2, skip_steps=1, per_op_max=2)
    assert {s for sig in steps.signatures.values() for first, last, _ in sig.steps for s in (first, last)} == {0, 1}
    assert "aten::zeros_like" not in {s.overload for s in steps.signatures.values()}  # the optimizer's first step
    assert max(Counter(r.overload for r in steps.calls()).values()) == 2


def test_steps_end_with_the_optimizer_if_nobody_says_so(tmp_path):
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(tmp_path / "a.trace", steps=1):
        for _ in range(3):
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    trace = Trace.open(tmp_path / "a.trace")
    assert {s.overload: s.calls for s in trace.signatures.values()}["aten::addmm"] == 1


@pytest.mark.parametrize(
    "limits, message",
    [
        ({"max_bytes": -1}, "max_bytes -1"),
        ({"per_signature": 0}, "per_signature 0"),
        ({"steps": 0}, "steps 0"),
        ({"values": "some"}, "full, seeded, stats"),
        ({"max_blob": 1.5}, "max_blob 1.5"),
    ],
)
def test_bad_limits_are_one_line(limits, message):
    with pytest.raises(UserError, match=message):
        Limits(**limits)


@pytest.mark.parametrize("text, size", [("100MB", 10**8), ("2GiB", 2 << 30), ("4096", 4096), ("1.5 k", 1500)])
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1XB", "-1", "1e9"])
def test_sizes_that_are_none(text):
    with pytest.raises(UserError, match="is not a size"):
        parse_size(text)


def test_14_equal_steps_add_no_bytes(tmp_path):
    sizes = []
    for steps in (1, 3):
        training = dlrm.build(dlrm.Config(tables=2, rows=50, batch=4, lr=1e-45))
        batch = next(training.batches)
        with Recorder(tmp_path / f"{steps}.trace", per_signature=5) as recorder:
            for _ in range(steps):
                training.step(batch, recorder.phase)
                recorder.step()
        sizes.append(bytes_of(tmp_path / f"{steps}.trace"))
    assert sizes[1] <= 1.05 * sizes[0]
