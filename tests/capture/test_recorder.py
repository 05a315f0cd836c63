"""What is stored of a call; each of these fails on a recorder that keeps tensors, or looks at them after the call."""

import math

import pytest
import torch
import torch.nn.functional as F

from capture import Recorder
from traces import Trace, UserError, verify
from traces.fingerprint import fingerprint
from traces.values import unpack


def the_call(trace, overload):
    (record,) = [r for r in trace.calls() if r.overload == overload]
    return record, unpack(trace.packed(record))


def overloads(trace):
    return [r.overload for r in trace.calls()]


def test_01_in_place_arguments_are_stored_as_they_were_before_the_call(record):
    x, y = torch.ones(3), torch.full((3,), 2.0)
    call, arguments = the_call(trace := record(lambda: x.add_(y)), "aten::add_.Tensor")
    assert x.tolist() == [3.0, 3.0, 3.0]
    assert arguments["self"].tolist() == [1.0, 1.0, 1.0]
    assert call.results["self"] == call.results["return"] == fingerprint({"x": x})["x"]
    assert verify(trace).exact == 1


def test_02_an_argument_that_is_the_destination_too(record):
    x = torch.ones(3)
    trace = record(lambda: x.add_(x))
    _, arguments = the_call(trace, "aten::add_.Tensor")
    assert arguments["self"].data_ptr() == arguments["other"].data_ptr()
    assert verify(trace).passed
    (signature,) = trace.signatures.values()
    assert "other=float32[3] is self" in signature.arguments


def test_adding_a_tensor_to_itself_is_another_signature(record):
    x, y = torch.ones(3), torch.ones(3)
    assert len(record(lambda: (x.add_(x), x.add_(y))).signatures) == 2


def test_02_a_matrix_and_its_transpose_are_stored_once(record):
    t = torch.rand(2, 3, 4)
    trace = record(lambda: torch.bmm(t, t.mT))
    call, arguments = the_call(trace, "aten::bmm")
    assert call.nbytes == t.nbytes
    assert arguments["self"].data_ptr() == arguments["mat2"].data_ptr()
    assert arguments["mat2"].stride() == (12, 1, 4)


def test_02_parts_of_one_buffer_stay_interleaved(record):
    qkv = torch.rand(2, 8, 3 * 16)
    q, k, v = (part.view(2, 8, 4, 4).transpose(1, 2) for part in qkv.split(16, dim=2))
    trace = record(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    call, arguments = the_call(trace, "aten::_scaled_dot_product_flash_attention_for_cpu")
    assert call.nbytes == qkv.nbytes
    assert arguments["key"].data_ptr() - arguments["query"].data_ptr() == 16 * 4
    assert verify(trace).passed


def test_04_numbers_keep_their_type(record):
    x, i = torch.ones(2), torch.ones(2, dtype=torch.int64)

    def work():
        for other in (2, True, 2.5, -math.inf, math.nan, torch.tensor(2.0)):
            x + other
        i * 2.5
        x.sub(x, alpha=3)

    trace = record(work)
    others = [unpack(trace.packed(r))["other"] for r in trace.calls() if r.overload == "aten::add.Tensor"]
    assert [type(o) for o in others] == [int, bool, float, float, float, torch.Tensor]
    assert [o for o in others if o == o][:4] == [2, True, 2.5, -math.inf]
    _, product = the_call(trace, "aten::mul.Tensor")
    assert (product["self"].dtype, product["other"]) == (torch.int64, 2.5)
    assert the_call(trace, "aten::sub.Tensor")[1]["alpha"] == 3
    assert verify(trace).exact == 8


def test_04_optional_and_keyword_arguments(record):
    x = torch.rand(3, 4)

    def work():
        x[:, torch.tensor([0, 2])]
        x.to(torch.float64, memory_format=torch.contiguous_format)
        torch.zeros(2, dtype=torch.bfloat16, device="cpu", layout=torch.strided)

    trace = record(work)
    assert the_call(trace, "aten::index.Tensor")[1]["indices"][0] is None
    assert the_call(trace, "aten::_to_copy")[1]["dtype"] is torch.float64
    assert the_call(trace, "aten::zeros")[1]["device"] == torch.device("cpu")
    assert verify(trace).passed


def write_into(garbage):
    def work():
        torch.full((1000,), garbage).bernoulli_(0.5, generator=torch.Generator().manual_seed(1))
        torch.full((10,), garbage).copy_(torch.ones(10))
        torch.mm(torch.eye(3), torch.eye(3), out=torch.full((3, 3), garbage))

    return work


def test_09_what_lay_in_a_destination_is_not_in_the_trace(record):
    first, second = record(write_into(1.0)), record(write_into(1234.5))
    needle = torch.tensor([1234.5, 1234.5]).numpy().tobytes()
    assert b"".join(p.read_bytes() for p in sorted(second.path.glob("blobs-*"))).count(needle) == 0
    for a, b in zip(first.calls(), second.calls(), strict=True):
        if a.overload != "aten::full":
            assert (a.header["contents"], a.results, a.rng) == (b.header["contents"], b.results, b.rng)
    assert verify(second).passed


def test_08_dropout_replays_to_its_own_mask(record):
    torch.manual_seed(7)
    trace = record(lambda: (F.dropout(torch.ones(100)), F.dropout(torch.ones(100))), per_signature=2)
    draws = [r for r in trace.calls() if r.kind == "random"]
    assert len(draws) == 2
    assert draws[0].results["return"] != draws[1].results["return"]
    assert verify(trace).passed
    assert not verify(without_generator_state(trace)).passed


def without_generator_state(trace):
    """The same trace, as a recorder would leave it that forgets the generator."""
    blob = torch.Generator().manual_seed(0).get_state().numpy().tobytes()
    trace.blob = lambda key, nbytes, where: blob if nbytes == len(blob) else Trace.blob(trace, key, nbytes, where)
    return trace


def test_08_an_explicit_generator_replays(record):
    generator = torch.Generator().manual_seed(3)
    generator.get_state()
    torch.rand(5, generator=generator)
    trace = record(lambda: torch.rand(5, generator=generator))
    assert verify(trace).exact == 1


def test_06_a_generator_is_read_without_advancing(record):
    def draw():
        return torch.rand(3), torch.nn.functional.dropout(torch.ones(8), 0.5)

    torch.manual_seed(5)
    expected = draw()
    torch.manual_seed(5)
    found = []
    record(lambda: found.extend(draw()))
    assert all(map(torch.equal, expected, found))


def test_views_are_stored_without_bytes(record):
    x = torch.rand(4, 4)
    trace = record(lambda: x.t().view(16) if x.t().is_contiguous() else x.view(16))
    assert {r.kind for r in trace.calls()} == {"view"}
    assert all(r.nbytes == 0 for r in trace.calls())
    assert verify(trace).metadata == len(list(trace.calls()))


def test_uninitialised_results_are_counted_as_not_comparable(record):
    assert verify(record(lambda: torch.empty_like(torch.ones(3)))).not_comparable == {"uninitialised result": 1}


def test_calls_are_counted_and_the_first_of_each_signature_is_stored(record):
    x = torch.ones(3)

    def work(recorder):
        for step in range(4):
            x * (step + 0.5)  # floats do not make signatures ...
            x.view(1, 3)
            x.sum(0) if step < 2 else x[:2].sum(0)  # ... shapes do
            recorder.step()

    trace = record(work)
    by_overload = {}
    for s in trace.signatures.values():
        by_overload.setdefault(s.overload, []).append((s.calls, len(s.samples), s.steps))
    assert by_overload["aten::mul.Tensor"] == [(4, 1, ((0, 3, 1),))]
    assert sorted(by_overload["aten::sum.dim_IntList"]) == [(2, 1, ((0, 1, 1),)), (2, 1, ((2, 3, 1),))]
    assert trace.manifest["steps"] == 4


def test_more_samples_of_a_signature(record):
    x = torch.ones(3)
    trace = record(lambda: [x + i for i in (1.5, 2.5, 3.5)], per_signature=2)
    assert [unpack(trace.packed(r))["other"] for r in trace.calls()] == [1.5, 2.5]
    (signature,) = trace.signatures.values()
    assert (signature.calls, signature.samples) == (3, (0, 1))


def test_numbers_that_are_equal_but_promote_differently_are_other_signatures(record):
    x = torch.ones(2, dtype=torch.int8)
    trace = record(lambda: [x + other for other in (1, True, 1.0)])
    assert len(trace.signatures) == len(list(trace.calls())) == 3


def test_integers_booleans_strides_and_dtypes_make_signatures(record):
    x = torch.rand(4, 4)

    def work():
        for y in (x, x.t(), x.double(), x[:, :2]):
            y.sum(dim=0), y.sum(dim=1), y.sum(dim=0, keepdim=True)

    trace = record(work)
    assert sum(s.overload == "aten::sum.dim_IntList" for s in trace.signatures.values()) == 12


def test_14_repeated_steps_add_no_bytes(record):
    model, x = torch.nn.Linear(64, 64), torch.rand(8, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def steps(n):
        def work():
            for _ in range(n):
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

        return work

    def nbytes(trace):
        return sum(p.stat().st_size for p in trace.path.glob("blobs-*"))

    assert nbytes(record(steps(3), per_signature=100)) == nbytes(record(steps(1), per_signature=100))


def test_14_signatures_do_not_grow_with_the_steps_of_an_optimizer(tmp_path):
    model, x = torch.nn.Linear(4, 4), torch.rand(2, 4)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    seen = []
    with Recorder(tmp_path / "a.trace") as recorder:
        for _ in range(10):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            recorder.step()
            seen.append(len(recorder._entries))
    assert seen[1:] == [seen[1]] * 9


@pytest.mark.parametrize("coalesced", [True, False])
def test_05_sparse_gradients(record, coalesced):
    table = torch.nn.Embedding(10, 3, sparse=True)

    def work():
        table(torch.tensor([1, 1, 4])).sum().backward()
        if coalesced:
            table.weight.grad.coalesce()
        torch.optim.SGD(table.parameters(), lr=0.1).step()

    trace = record(work)
    assert "aten::_coalesce" in overloads(trace) or not coalesced
    report = verify(trace)
    assert report.passed, report.mismatches


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_05_what_cannot_be_stored_is_recorded_with_its_reason(record):
    q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    trace = record(lambda: q.dequantize())
    assert verify(trace).not_comparable == {"quantised tensor cannot be recorded": 1}


def test_a_recorder_that_is_already_recording(tmp_path):
    with Recorder(tmp_path / "a.trace") as recorder:
        torch.ones(2)
        with pytest.raises(UserError, match="already recording"), recorder:
            pass
    assert Trace.open(tmp_path / "a.trace").complete


@pytest.mark.parametrize("name", ["ä b.trace", "deep/er/a.trace"])
def test_odd_paths(tmp_path, name):
    with Recorder(tmp_path / name):
        torch.ones(2) + 1
    assert Trace.open(tmp_path / name).manifest["calls"] == 2


def test_a_taken_path_is_told_in_the_words_of_python(tmp_path):
    with Recorder(tmp_path / "a.trace"):
        torch.ones(2).exp()
    with pytest.raises(UserError, match="exists; pass force=True to replace it"), Recorder(tmp_path / "a.trace"):
        pass
    with Recorder(tmp_path / "a.trace", force=True):
        torch.ones(2).neg()
    assert [r.overload for r in Trace.open(tmp_path / "a.trace").calls()][-1] == "aten::neg"
