"""What nobody wrote, or a library keeps for itself, is not compared, and the report says so."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from capture import Recorder
from enable.tables import verify_summary, verify_tables
from traces import Trace, verify
from traces.unwritten import incomparable


def lstm():
    layer, x = torch.nn.LSTM(4, 5), torch.randn(3, 2, 4)
    layer(x)[0].sum().backward()


def ctc():
    scores, targets = torch.randn(6, 2, 4).log_softmax(-1), torch.tensor([[1, 2], [3, 3]])
    junk = [torch.rand(6 * 2 * 5) for _ in range(200)]
    del junk  # what fresh memory holds is not zero
    for n in (5, 4, 3):
        F.ctc_loss(scores, targets, [6, n], [2, 2])
        F.ctc_loss(scores, targets, torch.tensor([6, n]), torch.tensor([2, 1]))


def smm():
    matrix = torch.randn(4, 4).relu()
    torch.smm(matrix.to_sparse(), matrix)


@pytest.fixture
def recorded(tmp_path):
    def run(program):
        torch.manual_seed(0)
        with Recorder(tmp_path / "a.trace", per_signature=9) as recorder:
            program()
        assert not recorder.errors
        return Trace.open(tmp_path / "a.trace")

    return run


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="LSTM runs by other operators")
def test_the_workspace_of_an_lstm_is_not_compared_and_all_else_is(recorded):
    trace = recorded(lstm)
    report = verify(trace)
    assert report.passed
    (reason,) = [r for r in report.not_comparable if "mkldnn_rnn_layer" in r]
    assert "workspace" in reason and "nothing else differs" in reason
    assert f"1 not comparable: {reason}" in verify_tables(verify_summary("lstm", trace, report))
    (call,) = [r for r in trace.calls() if r.overload == "aten::mkldnn_rnn_layer"]
    assert call.grad and sorted(incomparable(call, {})) == [3]
    assert sorted(incomparable(replace(call, grad=None), {})) == [0, 1, 2, 3]  # a trace of an earlier version


def test_what_ctc_leaves_unwritten_is_not_compared(recorded):
    report = verify(recorded(ctc))
    assert report.passed
    assert sum(n for reason, n in report.not_comparable.items() if "log_alpha" in reason) == 6


def test_ctc_of_equal_lengths_is_compared_whole(recorded):
    trace = recorded(
        lambda: F.ctc_loss(torch.zeros(6, 2, 4).log_softmax(-1), torch.tensor([[1, 2], [3, 3]]), [6, 6], [2, 2])
    )
    assert verify(trace).passed and not [r for r in verify(trace).not_comparable if "ctc" in r]


def test_a_difference_in_the_rest_is_still_seen(recorded, monkeypatch):
    trace = recorded(ctc)
    honest = torch.ops.aten._ctc_loss.default

    def wrong(op, args, kwargs):
        result = op(*args, **kwargs)
        return (result[0] + 1, result[1]) if op is honest else result

    monkeypatch.setattr("traces.materialise.answer", wrong)
    assert {m.overload for m in verify(trace).mismatches} == {"aten::_ctc_loss"}


def test_a_sparse_tensor_that_is_two_arguments_is_one_again(recorded):
    trace = recorded(smm)
    report = verify(trace)
    assert report.passed
    (call,) = [r for r in trace.calls() if r.overload == "aten::sspaddmm.out"]
    assert [call.header["tree"][name]["sparse_coo"].get("same") for name in ("self", "out")] == [None, 0]
