"""Traces in other tools' forms, and back. Acceptance test 19."""

import json
from collections import Counter

import pytest
import torch
from torch.profiler import ExecutionTraceObserver
from warm import python

from capture import Recorder
from capture.signatures import describe as describe_live
from traces import Trace, TraceError, UserError, verify
from traces.exchange import backendbench
from traces.exchange.grammar import Hostile, read_arguments
from traces.exchange.imports import import_trace
from traces.exchange.layout import TensorSpec, Unreadable
from traces.exchange.repro import write_repro
from traces.text import describe
from traces.values import pack, unpack


def step():
    """One training step with indices, bags, sparse gradients, views, scalars of all kinds and random numbers."""
    torch.manual_seed(0)
    table, bags = torch.nn.Embedding(50, 8), torch.nn.EmbeddingBag(50, 8, mode="sum", sparse=True)
    linear = torch.nn.Linear(8, 4)
    ids, offsets = torch.randint(0, 50, (6,)), torch.tensor([0, 1, 4, 4, 5, 6])
    hidden = torch.nn.functional.dropout(table(ids) + bags(ids, offsets), 0.5)
    logits = linear(hidden.to(torch.float32, memory_format=torch.contiguous_format))
    torch.nn.functional.cross_entropy(logits, ids % 4).backward()
    torch.optim.AdamW([*table.parameters(), *linear.parameters()], lr=0.1, fused=True).step()
    x = torch.randn(6, 6)
    x[:, torch.tensor([1, 5])].clamp(min=float("-inf")).mul(1 + 2j).gather(1, torch.zeros(6, 1, dtype=torch.int64))
    (x.T @ x).bernoulli_(0.5)
    torch.zeros(2, 1).T.add(True).add_(0.1)
    torch.zeros(3, 5, dtype=torch.bfloat16)[:, ::2].sum(dtype=torch.float64)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("exchange") / "step.trace"
    with Recorder(path):
        step()
    return Trace.open(path)


def text_of(trace, path):
    found = backendbench.export(trace, trace.calls())
    backendbench.write_text(found.rows, path)
    return found, path.read_text()


def test_19_backendbench_round_trip(recorded, tmp_path):
    """Export, read with our own parser, import, replay; the same text comes out again."""
    found, text = text_of(recorded, tmp_path / "a.txt")
    assert "Operator: aten.addmm.default\n" in text and "Operator: aten.index.Tensor\n" in text
    assert "T([6, 6], f32, [1, 6])" in text and "T([1, 2], f32, [1, 1])" in text and "T([3, 3], bf16, [5, 2])" in text
    assert "(T([1, 2], f32, [1, 1]), True)" in text and "{'dtype': f64}" in text and "-inf" in text
    sparse = {reason for reason in found.left_out if "sparse" in reason}
    assert sparse and set(found.left_out) == sparse
    assert found.lost["values"] and found.lost["aliasing"] and found.lost["generators"]
    left = import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "b.trace")
    assert not left.left_out and left.calls == sum(row.count for row in found.rows)
    again = Trace.open(tmp_path / "b.trace")
    assert text_of(again, tmp_path / "b.txt")[1] == text
    assert {r.level for r in again.calls()} == {"full", "seeded"}  # full: what is never read
    report = verify(again)
    assert report.passed and report.synthesised > 20, report.mismatches
    assert {s.calls for s in again.signatures.values()} >= {1, 2}


def test_19_backendbench_parquet(recorded, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = text_of(recorded, tmp_path / "a.txt")[0].rows
    backendbench.write_parquet(rows, tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    names = "uuid op_name args count is_synthetic included_in_benchmark why_excluded runtime_ms"
    more = "relative_runtime_to_kernel_launch runnable is_overhead_dominated_op"
    assert list(table[0]) == [*names.split(), *more.split()] and len({row["uuid"] for row in table}) == len(table)
    assert next(r for r in table if r["op_name"] == "aten.t.default")["why_excluded"] == ["view: computes nothing"]
    import_trace(tmp_path / "a.parquet", "backendbench-parquet", tmp_path / "b.trace")
    assert text_of(Trace.open(tmp_path / "b.trace"), tmp_path / "b.txt")[1] == (tmp_path / "a.txt").read_text()
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(TraceError, match="c.parquet: cannot be read as parquet"):
        import_trace(tmp_path / "c.parquet", "backendbench-parquet", tmp_path / "c.trace")


HOSTILE = [
    "__import__('os').system('touch {flag}')",
    "((__import__('os').system('touch {flag}'),), {{}})",
    "((T([2, [].__class__], f32),), {{}})",
    "((open('{flag}', 'w'),), {{}})",
    "((T([2], f32) if True else 1,), {{}})",
    "((lambda: 1,), {{}})",
    "(([x for x in (1,)],), {{}})",
    "((torch.load,), {{}})",
    "((f'{{1}}',), {{}})",
]


@pytest.mark.parametrize("payload", HOSTILE)
def test_19_a_payload_is_refused_by_file_and_line(payload, tmp_path):
    flag = tmp_path / "flag"
    text = f"Operator: aten.relu.default\ncnt: 1, ((T([2], f32),), {{}})\ncnt: 1, {payload.format(flag=flag)}\n"
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(Hostile, match=r"a\.txt:3: .*nothing was imported"):
        import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "a.trace")
    assert not flag.exists() and not (tmp_path / "a.trace").exists()


def test_an_operator_that_is_code_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("Operator: __import__('os')\n")
    with pytest.raises(Hostile, match=r"a\.txt:1: .*__import__"):
        import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "a.trace")


UNREADABLE = {
    "((T([2], f32), {})": "not in the form",
    "(" * 500 + ")" * 500: "not in the form",
    "((ST([2], f32),), {})": "sparse",
    "((T([-1], f32),), {})": "out of range",
    "((T([2, True], f32),), {})": "out of range",
    "((T([99999999999999999], f32),), {})": "out of range",
    "((T([2], f32, [1, 1]),), {})": "out of range",
    "((T([2]),), {})": "T(shape, dtype)",
    "((T([2], f32), 1), {})": "do not fit",
    "(([T([2], f32)],), {})": "do not fit",
    "((T([2], f32),), {'x': 1})": "do not fit",
    "((99999999999999999999999,), {})": "64 bits",
}


@pytest.mark.parametrize("text, reason", UNREADABLE.items(), ids=[reason for reason in UNREADABLE.values()])
def test_what_cannot_be_read_is_counted_and_import_goes_on(text, reason, tmp_path):
    lines = (
        f"Operator: aten.relu.default\ncnt: 3, {text}\ncnt: 1, ((T([2], f32),), {{}})\nOperator: aten.nope.default\n"
    )
    (tmp_path / "a.txt").write_text(lines + "cnt: 5, ((), {})\nnonsense\n")
    found = import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "a.trace")
    assert found.calls == found.stored == 1
    reasons = {why: n for why, n in found.left_out.items() if reason in why}
    assert list(reasons.values())[0] in (3, 4), found.left_out  # the last line is not in the form either
    assert found.left_out["unknown operator aten::nope"] == 5


def test_names_and_quotes_of_other_writers_are_read():
    args, kwargs = read_arguments("\"((T((2, 3), f16, stride=(1, 2)), [1, -2.5, nan]), {'device': device('cuda', )})\"")
    assert args[0] == TensorSpec((2, 3), (1, 2), torch.float16) and args[1][:2] == [1, -2.5]
    assert kwargs == {"device": torch.device("cuda")}
    with pytest.raises(Unreadable):
        read_arguments("((device('nowhere'),), {})")


def test_a_call_of_huge_tensors_is_counted_but_claims_no_memory(tmp_path):
    (tmp_path / "a.txt").write_text("Operator: aten.relu.default\ncnt: 2, ((T([1000000, 1000000], f32),), {})\n")
    found = import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "a.trace")
    (record,) = Trace.open(tmp_path / "a.trace").calls()
    assert record.level == "meta" and any("GiB" in what for what in found.lost)
    assert verify(Trace.open(tmp_path / "a.trace")).not_recorded == 1


def roles(tmp_path, *lines):
    """The arguments that the lines' calls are replayed with."""
    text = "".join(f"Operator: {op}\ncnt: 1, {arguments}\n" for op, arguments in lines)
    (tmp_path / "a.txt").write_text(text)
    import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "a.trace", force=True)
    trace = Trace.open(tmp_path / "a.trace")
    report = verify(trace)
    assert report.passed and report.synthesised == len(lines), report
    return [unpack(trace.packed(record)) for record in trace.calls()]


def test_indices_are_in_range_and_reach_the_ends(tmp_path):
    index, gather, take, loss = roles(
        tmp_path,
        ("aten.index.Tensor", "((T([7, 3], f32), [None, T([1000], i64)]), {})"),
        ("aten.gather.default", "((T([5, 11], f32), -1, T([5, 1000], i64)), {})"),
        ("aten.take.default", "((T([4, 4], f32), T([1000], i64)), {})"),
        ("aten.nll_loss_forward.default", "((T([1000, 9], f32), T([1000], i64), None, 1, -100), {})"),
    )
    ranges = [index["indices"][1], gather["index"], take["index"], loss["target"]]
    assert [(int(t.min()), int(t.max())) for t in ranges] == [(0, 2), (0, 10), (0, 15), (0, 8)]


def test_bags_agree_with_each_other(tmp_path):
    arguments = "(T([5, 8], f32), T([12], i64), T([12], i64), T([5], i64), T([5], i64), 100, False, 0, None)"
    backward, forward, divided = roles(
        tmp_path,
        ("aten._embedding_bag_dense_backward.default", f"({arguments}, {{}})"),
        ("aten._embedding_bag.default", "((T([100, 8], f32), T([12], i64), T([5], i64)), {})"),
        ("aten.div.Tensor_mode", "((T([9], i64), T([9], i64)), {'rounding_mode': 'floor'})"),
    )
    assert forward["offsets"].tolist() == [0, 2, 4, 7, 9]
    assert backward["offset2bag"].tolist() == [0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4]
    assert backward["bag_size"].tolist() == [2, 2, 3, 2, 3]
    assert forward["indices"].max() < 100 and divided["other"].min() > 0


def test_headers_say_the_same_as_live_arguments():
    x = torch.zeros(4, 6)
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2), (3,), check_invariants=True)
    arguments = {"a": x, "b": x, "c": x.T, "d": [x, None], "e": (1, True), "f": 0.5, "g": float("nan"), "h": sparse}
    arguments |= {"i": torch.float16, "j": torch.device("cpu"), "k": "s", "l": 1j, "m": torch.channels_last}
    assert describe(pack(arguments).header()) == describe_live(arguments)


def observed(path):
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    step()
    observer.stop()
    observer.unregister_callback()


def test_execution_trace_holds_what_a_recording_holds(recorded, tmp_path):
    observed(tmp_path / "et.json")
    found = import_trace(tmp_path / "et.json", "chakra", tmp_path / "et.trace")
    trace = Trace.open(tmp_path / "et.trace")
    assert found.lost["composite parents of calls that were taken over"] > 3
    assert found.lost["0-dim CPU tensors, which may have been Python numbers"] > 0
    report = verify(trace)
    assert report.passed and report.synthesised > 10, report.mismatches

    def calls(trace, phase):
        counts = Counter()
        for s in trace.signatures.values():
            counts[s.overload] += s.phases.get(phase, 0)
        return counts

    for overload in ("aten::addmm", "aten::embedding", "aten::_embedding_bag", "aten::mm", "aten::index.Tensor"):
        for phase in ("forward", "backward"):
            assert calls(trace, phase)[overload] == calls(recorded, phase)[overload], (overload, phase)
    assert calls(trace, "optimizer")["aten::_fused_adamw_"] == 1
    product = next(r for r in trace.calls() if r.overload == "aten::mm" and r.header["tensors"][0]["shape"] == [6, 6])
    assert [t["group"] for t in product.header["tensors"]] == [0, 0]  # x.T @ x


def test_execution_traces_that_are_none(tmp_path):
    path = tmp_path / "et.json"
    for text in ("{", "[]", '{"schema": "1.1.1", "nodes": 3}', '{"schema": "1.1.1", "nodes": [{}]}'):
        path.write_text(text)
        with pytest.raises(TraceError, match="et.json"):
            import_trace(path, "chakra", tmp_path / "et.trace")
    relu = {"attrs": [{"name": "op_schema", "value": "aten::relu(Tensor self) -> Tensor"}], "name": "aten::relu"}
    tensor = {"values": [[1, 2, 3, 4, 4, "cpu"]], "shapes": [[4]], "types": ["Tensor(float)"], "strides": [[1]]}
    bad = [{}, {**tensor, "shapes": []}, {**tensor, "shapes": [[-4]]}, {**tensor, "types": ["Tensor(os)"]}]
    bad += [{**tensor, "values": ["x"]}, {**tensor, "types": [None]}, {**tensor, "types": ["GenericList[Int,Int]"]}]
    nodes = [{"id": i, "ctrl_deps": i + 1, "inputs": inputs, **relu} for i, inputs in enumerate([tensor, *bad])]
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}))
    found = import_trace(path, "chakra", tmp_path / "et.trace")
    assert found.calls == 1 and sum(found.left_out.values()) == len(bad)


def test_unknown_form_and_empty_file(tmp_path):
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(UserError, match="backendbench-txt, backendbench-parquet, chakra"):
        import_trace(tmp_path / "a.txt", "csv", tmp_path / "a.trace")
    with pytest.raises(TraceError, match="no call"):
        import_trace(tmp_path / "a.txt", "backendbench-txt", tmp_path / "a.trace")
    assert not (tmp_path / "a.trace").exists()


def run_repro(path):
    return python("repro.py", cwd=path)


REPRODUCED = [
    "aten::_fused_adamw_",
    "aten::mm",
    "aten::index.Tensor",
    "aten::bernoulli_.float",
    "aten::t",
    "aten::add_.Tensor",
]


@pytest.mark.parametrize("overload", REPRODUCED)
def test_repro_runs_alone_and_is_exact(recorded, overload, tmp_path):
    record = next(r for r in recorded.calls() if r.overload == overload)
    write_repro(recorded, record, tmp_path / "r")
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == ["repro.py", "tensors.safetensors"]
    found = run_repro(tmp_path / "r")
    assert found.returncode == 0 and found.stdout.startswith("return: "), found.stdout + found.stderr
    assert ("bit-exact" in found.stdout) == (overload not in ("aten::t",))
    assert not {"traces", "capture"} & {
        line.split()[1]
        for line in (tmp_path / "r" / "repro.py").read_text().splitlines()
        if line.startswith(("import ", "from "))
    }


def test_repro_tells_a_difference(recorded, tmp_path):
    record = next(r for r in recorded.calls() if r.overload == "aten::mm")
    write_repro(recorded, record, tmp_path / "r")
    script, shard = tmp_path / "r" / "repro.py", tmp_path / "r" / "tensors.safetensors"
    data = bytearray(shard.read_bytes())
    data[8 + int.from_bytes(data[:8], "little")] ^= 0x40  # the first of the stored bytes
    shard.write_bytes(data)
    found = run_repro(tmp_path / "r")
    assert found.returncode == 1 and "difference" in found.stdout, found.stdout + found.stderr
    script.write_text(
        script.read_text().replace("'expected': {'return': {'shape': [", "'expected': {'return': {'shape': [1, ")
    )
    found = run_repro(tmp_path / "r")
    assert found.returncode == 1 and "expected" in found.stdout
    with pytest.raises(UserError, match="cannot be written"):
        write_repro(recorded, record, tmp_path / "r")
