import json

import pytest
import torch

from traces import Trace, TraceError, TraceWriter, verify
from traces.fingerprint import difference, fingerprint, moments, results, structure
from traces.format import encode_line
from traces.overloads import bind, resolve
from traces.replay import _without_seeds, available
from traces.values import pack
from traces.writer import CallSite


def store(path, name, *args, result=None, after=None, **kwargs):
    """A trace of one call. result, after: what to claim that it returned and left in its arguments."""
    op = resolve(name)
    writer = TraceWriter(path)
    arguments = bind(op, args, kwargs)
    header = writer.store(pack(arguments))
    result = op(*args, **kwargs) if result is None else result
    writer.add_call(
        writer.signature(name, "compute", "()"), CallSite(0, 0, "forward", ""), header,
        results(op, after or arguments, result),
    )  # fmt: skip
    writer.close()
    return Trace.open(path)


def test_an_exact_replay(tmp_path):
    trace = store(tmp_path / "t", "aten::mul.Tensor", torch.rand(4), torch.rand(4))
    assert verify(trace).passed


def test_one_flipped_bit_in_a_result_is_found(tmp_path):
    x = torch.tensor([1.0, 2.0])
    wrong = torch.tensor([3.0, torch.nextafter(torch.tensor(4.0), torch.tensor(5.0))])
    report = verify(store(tmp_path / "t", "aten::mul.Tensor", x, torch.tensor([3.0, 2.0]), result=wrong))
    (mismatch,) = report.mismatches
    assert mismatch.detail.startswith("return.hash: ")


def test_a_wrong_mutated_argument_is_found(tmp_path):
    x = torch.ones(3)
    trace = store(tmp_path / "t", "aten::zero_", x.clone(), after={"self": x}, result=torch.zeros(3))
    (mismatch,) = verify(trace).mismatches
    assert mismatch.detail.startswith("self.hash: ")


def test_wrong_strides_are_found(tmp_path):
    x = torch.rand(3, 3)
    trace = store(tmp_path / "t", "aten::mul.Tensor", x, x, result=(x * x).t().contiguous().t())
    assert verify(trace).mismatches[0].detail.startswith("return.stride[0]: ")


def test_a_zero_of_the_other_sign_differs():
    assert difference(fingerprint({"x": torch.tensor(0.0)}), fingerprint({"x": torch.tensor(-0.0)}))


def test_hashes_are_of_elements_not_of_memory():
    x = torch.rand(3, 4)
    assert fingerprint({"x": x})["x"]["hash"] == fingerprint({"x": x.t().contiguous().t()})["x"]["hash"]


@pytest.mark.parametrize(("a", "b"), [(1, True), (1, 1.0), ([1], [1, 2]), (None, 0), ({"a": 1}, {"b": 1})])
def test_difference_tells_types_apart(a, b):
    assert difference(a, b) is not None
    assert difference(a, a) is None


def test_errors_of_aten_are_mismatches(tmp_path):
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 3), torch.rand(4, 5), result=torch.rand(2, 5))
    (mismatch,) = verify(trace).mismatches
    assert mismatch.detail.startswith("RuntimeError: ")


def test_operators_that_act_outside_the_process_are_not_run(tmp_path):
    target = tmp_path / "victim"
    header = {"tree": {"filename": str(target), "shared": True, "size": 4}, "tensors": [], "groups": [], "contents": []}
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 2), torch.rand(2, 2))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    data = encode_line({**line, "overload": "aten::from_file", "header": header})
    (trace.path / "calls-00000.jsonl").write_bytes(data)
    trace.manifest["files"]["calls-00000.jsonl"] = len(data)
    assert verify(trace).not_comparable == {"acts outside the process": 1}
    assert not target.exists()


def test_a_hash_of_what_another_device_left_on_the_host_decides(tmp_path):
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 2), torch.rand(2, 2))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    line["header"]["groups"][0]["device"] = "cuda:0"
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    assert verify(trace).close == 1
    line["results"]["return"]["hash"] = "0" * 64
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    assert verify(trace).mismatches[0].detail.startswith("return.hash: ")


def test_calls_are_replayed_where_they_were_recorded(tmp_path):
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 2), torch.rand(2, 2))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    for group in line["header"]["groups"]:
        group["device"] = "cpu:0"  # a device of its own to the replay, and one that every machine has
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    assert (verify(trace).exact, verify(trace).close) == (0, 1)
    asked = []
    report = verify(trace, is_available=lambda device: asked.append(str(device)) is None and available(device))
    assert (report.exact, report.close, asked) == (1, 0, ["cpu:0"])
    line["results"]["return"]["hash"] = "0" * 64
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    assert verify(trace, is_available=available).mismatches[0].detail.startswith("return.hash: ")


def test_what_only_a_call_that_draws_gives_a_value_is_compared_by_its_structure():
    op = resolve("aten::_scaled_dot_product_cudnn_attention")
    tensors = [{"shape": [], "stride": [], "dtype": "int64", "moments": [str(i)] * 3} for i in range(9)]
    found = {"return": [*tensors[:4], 1, 1, *tensors[6:]]}
    kept = _without_seeds(op, found)["return"]
    assert kept[:6] == found["return"][:6]
    assert kept[6:] == [{"shape": [], "stride": [], "dtype": "int64"}] * 3
    assert _without_seeds(resolve("aten::mm"), {"return": tensors[0]}) == {"return": tensors[0]}


def test_a_device_without_kernels_of_pytorch_is_no_place_to_replay():
    assert available(torch.device("cpu"))
    assert not available(torch.device("privateuseone:0"))
    assert not available(torch.device("xla:0"))


def test_every_blob_is_checked_though_no_call_refers_to_it(tmp_path):
    writer = TraceWriter(tmp_path / "t")
    for length in (1, 63, 64, 65, 1000):
        writer.add_blob(bytes(length))
        writer.add_blob(b"x" * length)
    writer.close()
    shard = tmp_path / "t" / "blobs-00000.safetensors"
    assert verify(Trace.open(tmp_path / "t")).blobs == 10
    whole = shard.read_bytes()
    header = int.from_bytes(whole[:8], "little") + 8
    for position in range(header, len(whole), 61):
        shard.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(TraceError, match=r"blobs-00000.safetensors: blob .* was altered"):
            verify(Trace.open(tmp_path / "t"))


def test_full_records_need_their_hashes(tmp_path):
    trace = store(tmp_path / "t", "aten::mul.Tensor", torch.rand(4), torch.rand(4))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    del line["results"]["return"]["hash"]
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    assert not verify(trace).passed


def test_what_is_skipped_keeps_its_structure_alone():
    op = resolve("aten::add_.Tensor")
    x = torch.ones(3)
    found = results(op, {"self": x, "other": x, "alpha": 1}, [x, 2.5, True, None], skip=frozenset(("self", "return")))
    described = {"shape": [3], "stride": [1], "dtype": "float32"}
    assert found["self"] == described
    assert found["return"] == [described, {"scalar": "float"}, {"scalar": "bool"}, None]
    assert structure(found["return"]) == found["return"]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint8]
)
def test_moments(dtype, monkeypatch):
    monkeypatch.setattr("traces.fingerprint.CHUNK", 7)
    x = (torch.randn(5, 11) * 10).to(dtype).t()
    parts = torch.view_as_real(x) if dtype.is_complex else x
    expected = [parts.double().mean(), parts.double().abs().mean(), parts.double().abs().max()]
    assert moments(x) == pytest.approx([e.item() for e in expected])
    assert moments(x[:0]) == [0.0, 0.0, 0.0]


def test_the_generator_and_the_threads_are_left_as_they_were(tmp_path):
    trace = store(tmp_path / "t", "aten::mul.Tensor", torch.rand(4), torch.rand(4))
    trace.manifest["threads"] = torch.get_num_threads() + 1
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    verify(trace)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_a_result_that_was_recorded_without_its_memory_is_not_compared(tmp_path):
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 2), torch.rand(2, 2))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    line["results"] = {"return": {"unsupported": "no memory behind it"}}
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    report = verify(trace)
    assert report.passed and report.not_comparable == {"result without memory": 1}
