import json

import pytest
import torch

from traces import Trace, TraceWriter, verify
from traces.fingerprint import difference, fingerprint, results
from traces.format import encode_line
from traces.overloads import bind, resolve
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
    header = {"tree": {"filename": str(target), "shared": True, "size": 4}, "tensors": [], "groups": [], "blobs": []}
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 2), torch.rand(2, 2))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    data = encode_line({**line, "overload": "aten::from_file", "header": header})
    (trace.path / "calls-00000.jsonl").write_bytes(data)
    trace.manifest["files"]["calls-00000.jsonl"] = len(data)
    assert verify(trace).not_comparable == {"acts outside the process": 1}
    assert not target.exists()


def test_a_trace_of_another_device_is_not_comparable(tmp_path):
    trace = store(tmp_path / "t", "aten::mm", torch.rand(2, 2), torch.rand(2, 2))
    line = json.loads((trace.path / "calls-00000.jsonl").read_bytes().rpartition(b" ")[0])
    line["header"]["groups"][0]["device"] = "cuda:0"
    (trace.path / "calls-00000.jsonl").write_bytes(encode_line(line))
    assert verify(trace).not_comparable == {"recorded on cuda:0": 1}


def test_the_generator_and_the_threads_are_left_as_they_were(tmp_path):
    trace = store(tmp_path / "t", "aten::mul.Tensor", torch.rand(4), torch.rand(4))
    trace.manifest["threads"] = torch.get_num_threads() + 1
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    verify(trace)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
