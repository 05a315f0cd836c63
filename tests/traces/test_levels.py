"""Contents of every level: read, drawn, produced; and hostile specs of each."""

import json

import numpy as np
import pytest
import torch
from torch import tensor

from enable.cover.coverage import cases_by_overload, measure
from generate.kernel_library import KERNELS, Library
from traces import Trace, TraceError, TraceWriter, verify
from traces.contents import NotRecorded
from traces.fingerprint import results
from traces.format import encode_line
from traces.materialise import identity
from traces.overloads import bind, kind, resolve
from traces.records import CallRecord
from traces.synthesis import summarise
from traces.values import pack, unpack
from traces.writer import CallSite
from verify.cases.case import NoReference, case_of, reference
from verify.judging.standings import Standings
from verify.outcome import Outcome
from verify.platforms import load, names


class Tape:
    """Writes calls by hand. A spec may be a function of the writer and the tensor's dense bytes."""

    def __init__(self, path, info=None):
        self.writer = TraceWriter(path, info)

    def call(self, name, *args, specs=None, private=False, device=None, **kwargs):
        op = resolve(name)
        arguments = bind(op, args, kwargs)
        packed = pack(arguments)
        header = packed.header()
        contents = []
        for i, data in enumerate(packed.data):
            spec = (specs or {}).get(i)
            if spec is None:
                contents.append(self.writer.add_blob(data) if len(data) else "")
            else:
                contents.append(spec(self.writer, bytes(data)) if callable(spec) else spec)
        for group in header["groups"]:
            group["device"] = device or group["device"]
        result = op(*args, **kwargs)
        skip = frozenset(("return", *arguments)) if private else frozenset()
        found = results(op, arguments, result, skip, portable=device is not None)
        if device:
            found = json.loads(json.dumps(found).replace('"hash"', '"_hash"'))
            for value in found.values():
                value.pop("_hash", None)
        signature = self.writer.signature(name, kind(op, arguments), f"{len(self.writer._lines)} {name}")
        signature.count("forward", 0)
        return self.writer.add_call(signature, CallSite(0, 0, "forward", ""), {**header, "contents": contents}, found)

    def close(self, complete=True):
        self.writer.close(complete)
        return Trace.open(self.writer.path, partial=not complete)


@pytest.fixture
def tape(tmp_path):
    tape = Tape(tmp_path / "t")
    yield tape
    tape.writer._calls.close()  # of an unfinished trace


def stats_of(x):
    return summarise(x.reshape(-1), x.numel())


def seeded(x, seed=5):
    return {"level": "seeded", "stats": stats_of(x), "seed": seed}


def rows(table, chosen):
    def spec(writer, data):
        keys = {
            "rows": writer.add_blob(np.array(chosen, dtype="<i8").tobytes()),
            "blob": writer.add_blob(table[chosen].numpy().tobytes()),
        }
        return {"level": "rows", **keys, "count": len(chosen), "stats": stats_of(table), "seed": 1}

    return spec


def ids(values, width, low=0, count=None):
    def spec(writer, data):
        key = writer.add_blob(np.array(values, dtype=f"<u{width}").tobytes())
        return {"level": "seeded", "ids": key, "width": width, "low": low, "count": count or len(values)}

    return spec


def source(call, **place):
    return {"level": "seeded", "from": {"call": call, **place}}


def arguments_of(trace, number=-1):
    record = list(trace.calls())[number]
    return unpack(trace.packed(record), record.where)


def test_drawn_contents(tape):
    x = torch.randn(100, 100)
    tape.call("aten::exp", x, specs={0: seeded(x)})
    trace = tape.close()
    (record,) = trace.calls()
    assert record.level == "seeded"
    y = arguments_of(trace)["self"]
    assert y.shape == x.shape and not torch.equal(x, y)
    assert abs(y.std() - 1) < 0.1
    assert torch.equal(y, arguments_of(trace)["self"])
    report = verify(trace)
    assert (report.synthesised, report.exact, report.passed) == (1, 0, True)


def test_a_compact_span(tape):
    base = torch.arange(1000.0)
    x = base[:999:9]
    dense = lambda writer, data: {  # noqa: E731
        "level": "full",
        "compact": True,
        "blob": writer.add_blob(x.contiguous().numpy().tobytes()),
    }
    tape.call("aten::mul.Tensor", x, 2.0, specs={0: dense})
    trace = tape.close()
    assert next(trace.calls()).level == "full"
    back = arguments_of(trace)["self"]
    assert torch.equal(back, x) and back.stride() == (9,)
    assert torch.isnan(back.as_strided((2,), (1,)))[1]  # poison in the gaps
    assert verify(trace).exact == 1


def test_a_table_by_its_rows(tape):
    table = torch.randn(500, 16)
    tape.call("aten::embedding", table, tensor([3, 400, 3]), specs={0: rows(table, [3, 400])})
    trace = tape.close()
    assert next(trace.calls()).level == "rows"
    back = arguments_of(trace)["weight"]
    assert torch.equal(back[[3, 400]], table[[3, 400]])
    assert not torch.equal(back[5], table[5])
    assert verify(trace).exact == 1


def test_a_mutated_table_is_not_compared(tape):
    table = torch.randn(50, 4)
    tape.call("aten::index_add_", table, 0, tensor([7]), torch.ones(1, 4), specs={0: rows(table.clone(), [7])})
    report = verify(tape.close())
    assert (report.synthesised, report.exact, report.passed) == (1, 0, True)


def test_wrong_rows_are_found(tape):
    table = torch.randn(50, 4)
    tape.call("aten::embedding", table, tensor([3]), specs={0: rows(table + 1, [3])})
    assert verify(tape.close()).mismatches[0].detail.startswith("return.hash")


@pytest.mark.parametrize(("width", "low"), [(1, 0), (1, -100), (2, 5), (4, 0), (8, -1)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_pseudonymised_ids(tape, width, low, dtype):
    given = tensor([1, 2, 0, 200], dtype=dtype)
    tape.call("aten::neg", given, specs={0: ids([0, 7, 255, 7], width, low)})
    back = arguments_of(tape.close())["self"]
    assert back.dtype == dtype
    assert back.tolist() == [low, low + 7, low + 255, low + 7]


def softmax_and_backward(tape, x, **kwargs):
    """Both calls; the backward one takes its output from the forward one, whose input is drawn."""
    out = torch.ops.aten._softmax(x, 1, False)
    first = tape.call("aten::_softmax", x, 1, False, specs={0: seeded(x)}, **kwargs)
    grad = torch.randn_like(out)
    specs = {0: seeded(grad), 1: source(first, output=[])}
    return tape.call("aten::_softmax_backward_data", grad, out, 1, x.dtype, specs=specs, **kwargs)


def test_what_another_call_returns(tape):
    softmax_and_backward(tape, torch.randn(20, 30))
    trace = tape.close()
    out = arguments_of(trace)["output"]
    assert torch.allclose(out.sum(1), torch.ones(20))
    assert torch.equal(out, arguments_of(trace, 0)["self"].softmax(1))
    assert verify(trace).synthesised == 2


def test_one_of_several_results_and_an_argument_before_it_is_written(tape):
    x, w = torch.randn(8, 4), torch.ones(4)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, [4], w, w, 1e-5)
    tape.call("aten::native_layer_norm", x, [4], w, w.clone(), 1e-5, specs={0: seeded(x)})
    tape.call("aten::sub.Tensor", mean, rstd, specs={0: source(0, output=[1]), 1: source(0, output=[2])})
    y = torch.zeros(8, 4)
    tape.call("aten::add_.Tensor", y, x, specs={1: source(0, argument="input", path=[])})
    tape.call("aten::neg", torch.zeros(8, 4), specs={0: source(2, argument="self", path=[])})
    trace = tape.close()
    drawn = arguments_of(trace, 0)["input"]
    assert torch.allclose(arguments_of(trace, 1)["self"], drawn.mean(1, keepdim=True), atol=1e-6)
    assert torch.equal(arguments_of(trace, 2)["other"], drawn)
    assert arguments_of(trace, 3)["self"].abs().sum() == 0


def test_a_long_chain_needs_no_recursion(tape, monkeypatch):
    monkeypatch.setattr("traces.materialise.CACHE_BYTES", 100)
    x = torch.ones(3)
    tape.call("aten::add.Tensor", x, 1, specs={0: {"level": "seeded", "stats": {"min": 0.0, "max": 0.0}, "seed": 0}})
    for i in range(1500):
        tape.call("aten::add.Tensor", x, 1, specs={0: source(i, output=[])})
    trace = tape.close()
    assert arguments_of(trace)["self"].tolist() == [1500.0] * 3
    assert len(identity(trace, list(trace.calls())[-1])) == 32


def test_a_random_producer_without_a_state_is_the_same_every_time(tape):
    x = torch.ones(100)
    tape.call("aten::native_dropout", x, 0.5, True)
    tape.call("aten::neg", x, specs={0: source(0, output=[0])})
    trace = tape.close()
    before = torch.get_rng_state()
    first = arguments_of(trace)["self"]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, arguments_of(Trace.open(trace.path))["self"])


def test_values_that_were_not_recorded(tape):
    x = torch.randn(10)
    tape.call("aten::exp", x, specs={0: {"level": "stats", "stats": stats_of(x), "why": "--values stats"}})
    tape.call("aten::exp", x, specs={0: {"level": "meta"}})
    tape.call("aten::sin", x, specs={0: source(0, output=[])})
    trace = tape.close()
    assert [r.level for r in trace.calls()] == ["stats", "meta", "seeded"]
    for number in range(3):
        with pytest.raises(NotRecorded, match="values not recorded"):
            arguments_of(trace, number)
    report = verify(trace)
    assert report.not_recorded == 2
    assert report.not_comparable.total() == 1
    assert report.exact == report.synthesised == 0


def test_a_producer_that_raises(tape):
    x = torch.randn(3)
    tape.call("aten::exp", x)
    tape.call("aten::sin", x, specs={0: source(0, output=[])})
    trace = tape.close()
    edit(trace.path, 0, lambda c: c.update(overload="aten::logdet"))
    with pytest.raises(NotRecorded, match="cannot be run again"):
        arguments_of(Trace.open(trace.path))


def test_a_producer_that_acts_outside_the_process_is_not_run(tape, tmp_path):
    x = torch.randn(3)
    tape.call("aten::exp", x)
    tape.call("aten::sin", x, specs={0: source(0, output=[])})
    trace = tape.close()
    tree = {"filename": str(tmp_path / "victim"), "shared": True, "size": 4}
    header = {"tree": tree, "tensors": [], "groups": [], "contents": []}
    edit(trace.path, 0, lambda c: c.update(overload="aten::from_file", header=header))
    with pytest.raises(NotRecorded, match="not an operator that is run again"):
        arguments_of(Trace.open(trace.path))
    assert not (tmp_path / "victim").exists()


def test_identity_covers_what_a_call_is_produced_from(tmp_path):
    x = torch.zeros(4)  # one tensor, since alignment is part of a call's identity

    def last(name, seed, padding):
        tape = Tape(tmp_path / name)
        for _ in range(padding):  # other numbers of calls
            tape.call("aten::neg", torch.ones(1))
        stats = {"min": 0.0, "max": 1.0}
        first = tape.call("aten::exp", x, specs={0: {"level": "seeded", "stats": stats, "seed": seed}})
        spec = {**source(first, output=[]), "why": f"reason {padding}"}
        tape.call("aten::sin", x, specs={0: spec})
        trace = tape.close()
        return identity(trace, list(trace.calls())[-1])

    assert last("a", 1, 0) == last("b", 1, 2)
    assert last("c", 2, 0) != last("d", 1, 0)


def edit(path, number, change):
    """Alter one call and give it a valid checksum, as an attacker would."""
    file = path / "calls-00000.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    value = json.loads(lines[number].rpartition(b" ")[0])
    change(value)
    lines[number] = encode_line(value)
    file.write_bytes(b"".join(lines))
    manifest = json.loads((path / "manifest.json").read_text())
    if "files" in manifest:
        manifest["files"][file.name] = file.stat().st_size
        (path / "manifest.json").write_text(json.dumps(manifest))


KEY = "0" * 64
STATS = {"min": 0.0, "max": 1.0}
SEEDED = {"level": "seeded", "seed": 1}
BAD_STATS = {
    "not an object": [],
    "min not a number": {"min": "0", "max": 1.0},
    "max infinite": {"min": 0.0, "max": float("inf")},
    "mean NaN": {"mean": float("nan")},
    "std huge integer": {"std": 10**400},
    "min alone": {"min": 0.0},
    "max below min": {"min": 2.0, "max": 1.0},
    "zeros above 1": {"zeros": 1.5},
    "nan below 0": {"nan": -0.5},
    "posinf and neginf above 1": {"posinf": 0.7, "neginf": 0.7},
    "quantiles too few": {"quantiles": [0.0] * 20},
    "quantiles descending": {"quantiles": [float(-i) for i in range(21)]},
    "quantiles of text": {"quantiles": ["a"] * 21},
    "count a truth value": {"count": True},
    "count over the span": {"count": 1000},
    "ones negative": {"ones": -1},
    "sorted a number": {"sorted": 1},
}
BAD_SPECS = {
    "a number": (5, "contents[0]"),
    "no level": ({}, "contents[0].level"),
    "bad level": ({"level": "best"}, "contents[0].level"),
    "level of a list": ({"level": []}, "contents[0].level"),
    "why not text": ({"level": "meta", "why": 3}, "contents[0].why"),
    "full without blob": ({"level": "full", "compact": True}, "contents[0].blob"),
    "full without compact": ({"level": "full", "blob": KEY}, "contents[0].compact"),
    "compact blob is missing": ({"level": "full", "blob": KEY, "compact": True}, f"blob {KEY}"),
    "seeded from nothing": (SEEDED, "contents[0]"),
    "seeded twice": ({**SEEDED, "stats": STATS, "ids": KEY}, "contents[0]"),
    "seed negative": ({**SEEDED, "stats": STATS, "seed": -1}, "contents[0].seed"),
    "seed beyond 64 bits": ({**SEEDED, "stats": STATS, "seed": 1 << 64}, "contents[0].seed"),
    "seed a fraction": ({**SEEDED, "stats": STATS, "seed": 0.5}, "contents[0].seed"),
    "stats without stats": ({"level": "stats"}, "contents[0].stats"),
    "from itself": (source(1, output=[]), "contents[0].from.call"),
    "from a later call": (source(2, output=[]), "contents[0].from.call"),
    "from a negative call": (source(-1, output=[]), "contents[0].from.call"),
    "from text": ({"level": "seeded", "from": "0"}, "contents[0].from"),
    "from nowhere in a call": (source(0), "contents[0].from"),
    "from two places": (source(0, output=[], argument="self", path=[]), "contents[0].from"),
    "output not a path": (source(0, output=0), "contents[0].from.output"),
    "output path too deep": (source(0, output=[0] * 9), "contents[0].from.output"),
    "output path negative": (source(0, output=[-1]), "contents[0].from.output"),
    "output is missing": (source(0, output=[3]), "contents[0].from"),
    "argument is missing": (source(0, argument="weight", path=[]), "contents[0].from"),
    "argument is no tensor": (source(0, argument="alpha", path=[]), "contents[0].from"),
    "argument without path": (source(0, argument="self"), "contents[0].from.path"),
    "argument not a name": (source(0, argument=1, path=[]), "contents[0].from.argument"),
    "of another shape": (source(0, argument="other", path=[]), "contents[0].from"),
    "width 3": ({**SEEDED, "ids": KEY, "width": 3, "low": 0, "count": 6}, "contents[0].width"),
    "width true": ({**SEEDED, "ids": KEY, "width": True, "low": 0, "count": 6}, "contents[0].width"),
    "low of text": ({**SEEDED, "ids": KEY, "width": 1, "low": "0", "count": 6}, "contents[0].low"),
    "bad id key": ({**SEEDED, "ids": "../x", "width": 1, "low": 0, "count": 6}, "contents[0].ids"),
    "ids for floats": ({**SEEDED, "ids": KEY, "width": 1, "low": 0, "count": 6}, "contents[0]"),
    "rows without rows": ({**SEEDED, "level": "rows", "blob": KEY, "count": 1, "stats": STATS}, "contents[0].rows"),
    "rows of count -1": (
        {**SEEDED, "level": "rows", "rows": KEY, "blob": KEY, "count": -1, "stats": STATS},
        "contents[0].count",
    ),
    "more rows than there are": (
        {**SEEDED, "level": "rows", "rows": KEY, "blob": KEY, "count": 3, "stats": STATS},
        "contents[0].count",
    ),
    **{f"stats: {name}": ({**SEEDED, "stats": s}, "contents[0].stats") for name, s in BAD_STATS.items()},
}


@pytest.fixture
def two_calls(tape):
    tape.call("aten::add.Tensor", torch.randn(2, 3), torch.ones(3))
    tape.call("aten::exp", torch.randn(2, 3))
    tape.call("aten::neg", tensor([3, 5]))
    return tape.close().path


def refusal(path, number):
    with pytest.raises(TraceError) as error:
        trace = Trace.open(path)
        record = list(trace.calls())[number]
        trace.packed(record)
    message = str(error.value)
    assert "\n" not in message and len(message) < 500
    assert f"calls-00000.jsonl:{number + 1}" in message
    return message


@pytest.mark.parametrize(("spec", "named"), BAD_SPECS.values(), ids=BAD_SPECS.keys())
def test_hostile_specs(two_calls, spec, named):
    text = json.dumps(spec)  # allows NaN and infinity, as a hostile writer would
    edit_text(two_calls, 1, lambda c: c["header"].update(contents=["SPEC"]), '"SPEC"', text)
    assert named in refusal(two_calls, 1)


def edit_text(path, number, change, old, new):
    import zlib

    edit(path, number, change)
    file = path / "calls-00000.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    line = lines[number].rpartition(b" ")[0].replace(old.encode(), new.encode())
    lines[number] = line + f" {zlib.crc32(line):08x}\n".encode()
    file.write_bytes(b"".join(lines))
    edit(path, 0, lambda c: None)  # mends the size


def test_an_oversized_claim_allocates_nothing(two_calls):
    def claim(call):
        call["header"]["groups"][0]["nbytes"] = 1 << 40
        call["header"]["tensors"][0].update(shape=[1 << 38], stride=[1])
        call["header"]["contents"] = [{**SEEDED, "stats": STATS}]

    edit(two_calls, 1, claim)
    assert f"the limit is {1 << 32}" in refusal(two_calls, 1)


def test_a_span_that_its_dtype_does_not_fill(two_calls):
    def claim(call):
        call["header"]["groups"][0]["nbytes"] = 26
        call["header"]["contents"] = [{**SEEDED, "stats": STATS}]

    edit(two_calls, 1, claim)
    assert "26 bytes" in refusal(two_calls, 1)


def test_seeded_spans_of_two_dtypes(two_calls):
    def claim(call):
        call["header"]["tensors"].append({**call["header"]["tensors"][0], "dtype": "int32"})
        call["header"]["contents"] = [{**SEEDED, "stats": STATS}]

    edit(two_calls, 1, claim)
    assert "2 dtypes" in refusal(two_calls, 1)


BAD_IDS = {
    "fewer than elements": (ids([1], 1), "contents[0].count"),
    "shorter blob": (ids([1], 1, count=2), "blob"),
    "beyond the dtype": (ids([1, 2**63], 8), "out of range"),
    "below the dtype": (ids([1, 2], 1, low=-(2**40)), "out of range"),
}


@pytest.mark.parametrize(("spec", "named"), BAD_IDS.values(), ids=BAD_IDS.keys())
def test_ids_that_do_not_fit(tape, spec, named):
    tape.call("aten::neg", tensor([3, 5], dtype=torch.int32), specs={0: spec})
    path = tape.close().path
    message = None
    with pytest.raises(TraceError) as error:
        arguments_of(Trace.open(path))
    message = str(error.value)
    assert named in message and "\n" not in message


BAD_ROWS = {
    "out of range": [1, 50],
    "negative": [-1, 3],
    "descending": [5, 3],
    "twice": [3, 3],
}


@pytest.mark.parametrize("chosen", BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_rows_that_are_none_of_the_table(tape, chosen):
    table = torch.randn(50, 4)

    def spec(writer, data):
        return {
            **SEEDED,
            "level": "rows",
            "rows": writer.add_blob(np.array(chosen, dtype="<i8").tobytes()),
            "blob": writer.add_blob(bytes(32)),
            "count": 2,
            "stats": STATS,
        }

    tape.call("aten::embedding", table, tensor([3]), specs={0: spec})
    assert "rows are not ascending" in refusal(tape.close().path, 0)


def test_rows_of_what_is_no_table(tape):
    x = torch.randn(50)
    tape.call("aten::exp", x, specs={0: rows(x.view(50, 1), [3])})
    assert "expected a table" in refusal(tape.close().path, 0)


def test_two_calls_of_one_id(two_calls):
    edit(two_calls, 2, lambda c: c.update(id=1))
    with pytest.raises(TraceError, match=r"jsonl:3: id 1 occurs twice"):
        Trace.open(two_calls).record(0, "here")


def test_a_call_that_is_not_there(two_calls):
    edit(two_calls, 1, lambda c: c.update(id=9, header={**c["header"], "contents": [source(5, output=[])]}))
    assert "call 5 is not stored here" in refusal(two_calls, 1)


def test_a_record_has_a_level_without_being_read():
    fields = dict.fromkeys(CallRecord.__dataclass_fields__)
    header = {"contents": [None, "", KEY, {"level": "rows"}, {"level": "seeded"}]}
    assert CallRecord(**{**fields, "header": header}).level == "seeded"
    assert CallRecord(**{**fields, "header": {"contents": []}}).level == "full"


# Calls of another device.


def test_moments_of_another_device_are_compared_within_tolerance(tape):
    x = torch.randn(50, 50)
    tape.call("aten::mm", x, x, device="cuda:0")
    tape.call("aten::t", x, device="cuda:0")
    tape.call("aten::bernoulli", torch.full((100,), 0.5), device="cuda:0")
    softmax_and_backward(tape, torch.randn(4, 5), device="cuda:0")
    report = verify(tape.close())
    assert report.mismatches == []
    assert (report.close, report.metadata, report.synthesised, report.exact) == (1, 2, 2, 0)


@pytest.mark.parametrize("factor", [1.01, -1.0, 0.0, float("nan"), float("inf")])
def test_other_moments_are_found(tape, factor):
    x = torch.rand(50, 50)
    tape.call("aten::mm", x, x, device="cuda:0")
    path = tape.close().path

    def change(call):
        call["results"]["return"]["moments"][0] = (x.mm(x).double().mean().item() * factor).hex()

    edit(path, 0, change)
    (mismatch,) = verify(Trace.open(path)).mismatches
    assert mismatch.detail.startswith("return: mean is")


@pytest.mark.parametrize("moments", [None, [], ["x", "y", "z"], [1, 2, 3], {"a": 1}])
def test_malformed_moments_are_mismatches(tape, moments):
    tape.call("aten::exp", torch.rand(5), device="cuda:0")
    path = tape.close().path
    edit(path, 0, lambda c: c["results"]["return"].update(moments=moments))
    assert "are no moments" in verify(Trace.open(path)).mismatches[0].detail


def test_missing_moments_are_no_pass(tape):
    tape.call("aten::exp", torch.rand(5), device="cuda:0")
    path = tape.close().path
    edit(path, 0, lambda c: c["results"]["return"].pop("moments"))
    report = verify(Trace.open(path))
    assert report.close == 0
    assert "neither hash nor moments" in report.mismatches[0].detail


def test_what_has_no_kernel_on_the_cpu(tape):
    q = torch.randn(1, 1, 4, 8)
    tape.call("aten::exp", q, device="cuda:0")
    path = tape.close().path

    def change(call):
        tree = {n: {"tensor": 0} for n in ("query", "key", "value")}
        tree |= {"dropout_p": {"float": "0x0p+0"}, "is_causal": False, "return_debug_mask": False, "scale": None}
        call["overload"] = "aten::_scaled_dot_product_flash_attention"
        call["header"]["tree"] = tree

    edit(path, 0, change)
    assert verify(Trace.open(path)).not_comparable == {"no CPU kernel": 1}


# Unfinished traces.


def test_amendments_of_an_unfinished_trace(tape):
    x, y = torch.randn(4), torch.randn(4)
    tape.call("aten::add.Tensor", x, y)
    tape.call("aten::neg", x)
    tape.writer.amend(0, {"1": seeded(y)})
    tape.writer.flush()
    trace = Trace.open(tape.writer.path, partial=True)
    assert [r.level for r in trace.calls()] == ["seeded", "full"]
    back = arguments_of(trace, 0)
    assert torch.equal(back["self"], x) and not torch.equal(back["other"], y)
    assert trace.damage == []
    report = verify(trace)
    assert (report.exact, report.synthesised) == (1, 1)
    assert [r.level for r in tape.close().calls()] == ["seeded", "full"]  # folded in


BAD_AMENDMENTS = {
    "of no call": ({"amend": 7, "contents": {}}, "no call 7"),
    "of text": ({"amend": "0", "contents": {}}, "amend"),
    "without contents": ({"amend": 0}, "contents"),
    "of a bad spec": ({"amend": 0, "contents": {"0": {"level": "best"}}}, "contents.0.level"),
    "of a later call": ({"amend": 0, "contents": {"0": source(0, output=[])}}, "contents.0.from.call"),
    "of no group": ({"amend": 0, "contents": {"9": {"level": "meta"}}}, "group '9'"),
    "of a group of text": ({"amend": 0, "contents": {"-1": {"level": "meta"}}}, "group '-1'"),
}


@pytest.mark.parametrize(("line", "named"), BAD_AMENDMENTS.values(), ids=BAD_AMENDMENTS.keys())
def test_bad_amendments(tape, line, named):
    tape.call("aten::neg", torch.ones(3))
    tape.writer._lines.append(encode_line(line))
    tape.writer.flush()
    with pytest.raises(TraceError, match="jsonl:") as error:
        list(Trace.open(tape.writer.path, partial=True).calls())
    assert named in str(error.value)


def test_an_amendment_in_a_complete_trace_is_refused(two_calls):
    edit(two_calls, 2, lambda c: [c.clear(), c.update(amend=0, contents={})])
    assert "id is" in refusal(two_calls, 2)


def test_lost_bytes_of_an_unfinished_trace_are_told(tape):
    x = torch.randn(100)
    tape.call("aten::exp", x)
    tape.writer.flush()
    tape.call("aten::sin", torch.randn(100))
    tape.call("aten::neg", x, specs={0: source(1, output=[])})
    tape.call("aten::cos", x)
    tape.writer.flush()
    path = tape.writer.path
    shard = path / "blobs-00001.safetensors"
    whole = shard.read_bytes()
    for damaged in (whole[:100], whole[:-1], b"", None):
        shard.write_bytes(damaged) if damaged is not None else shard.unlink()
        trace = Trace.open(path, partial=True)
        assert [r.id for r in trace.calls()] == [0, 3]
        assert verify(trace).exact == 2
        left_out = [line for line in trace.damage if "left out" in line]
        assert len(left_out) == 2 and "call 1 is lost" in left_out[1]
        assert any("blobs-00001" in line for line in trace.damage) == (damaged is not None)
        assert all("\n" not in line for line in trace.damage)


def test_every_cut_of_an_unfinished_trace_is_read(tape):
    for i in range(4):
        tape.call("aten::exp", torch.randn(3 + i))
    tape.writer.flush()
    file = tape.writer.path / "calls-00000.jsonl"
    whole = file.read_bytes()
    for cut in range(0, len(whole), 37):
        file.write_bytes(whole[:cut])
        trace = Trace.open(tape.writer.path, partial=True)
        count = whole[:cut].count(b"\n")
        assert len(list(trace.calls())) == count
        assert trace.torn == bool(trace.damage) == (whole[:cut].rpartition(b"\n")[2] != b"")


# What the levels mean for cases and coverage.


def test_a_case_of_every_replayable_level(tape):
    table = torch.randn(50, 4)
    tape.call("aten::embedding", table, tensor([3]), specs={0: rows(table, [3])})
    softmax_and_backward(tape, torch.randn(4, 5))
    tape.call("aten::exp", table, specs={0: {"level": "stats", "stats": stats_of(table)}})
    trace = tape.close()
    *replayable, last = trace.calls()
    cases = [case_of(trace, record) for record in replayable]
    assert len({case.id for case in cases}) == 3
    for case in cases:
        assert reference(case).native.tree["return"] is not None
    with pytest.raises(NoReference, match="values not recorded"):
        reference(case_of(trace, last))
    assert {o: len(c) for o, c in cases_by_overload(trace).items()} == {
        "aten::embedding": 1,
        "aten::_softmax": 1,
        "aten::_softmax_backward_data": 1,
    }


class NoJudge:
    """Judges nothing, and must not be asked to."""

    platform = load(names()[0])

    def judge(self, jobs, progress):
        assert list(jobs) == []
        return {}

    def standings(self):
        return Standings()


def test_no_values_are_no_pass(tape, tmp_path):
    x = torch.randn(50)
    tape.call("aten::exp", x, specs={0: {"level": "stats", "stats": stats_of(x)}})
    tape.call("aten::exp", x, specs={0: {"level": "meta"}})
    found = measure("m", tape.close(), Library(tmp_path, KERNELS), NoJudge(), lambda n: lambda *a: None, frozenset())
    (row,) = found.rows
    assert (row.outcome, row.detail, row.cases) == (Outcome.SKIPPED, "values not recorded (meta, stats)", 0)
    assert row.kernel is not None
    assert not row.covered
