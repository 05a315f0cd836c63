"""Acceptance tests 1, 3 to 5, 7 to 10 and 15, as far as the tests of single features do not hold them already."""

import json
import math
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from warm import python

import capture.tape
from capture import Recorder
from capture.targets import load_target
from enable.cli import run
from traces import Trace, verify
from traces.format import CALLS, MANIFEST, encode_line
from traces.values import ALIGNMENT, unpack
from verify.cases.case import case_of
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

ROOT = Path(__file__).parents[2]
SMALL = {"n_layer": "1", "n_head": "2", "n_embd": "16", "block_size": "8"}

IN_PLACE_ADD = '''"""aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)

A candidate.
"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::add_.Tensor",)
DTYPES = ("float32",)


@triton.jit
def kernel_add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(x_ptr + i, RESULT, mask=i < n)


def wrapper(self, other, *, alpha=1):
    kernel_add[(triton.cdiv(self.numel(), 64),)](self, other, self.numel(), BLOCK=64)
    return self
'''


def test_01_candidates_that_do_nothing_or_zero_are_rejected(record, judge):
    """Judged on the call as it was recorded, of which the program has meanwhile changed the argument."""
    x, y = torch.rand(70) + 1, torch.rand(70) + 1
    trace = record(lambda: x.add_(y))
    case = case_of(trace, next(iter(trace.calls())))
    launch = next(line for line in IN_PLACE_ADD.splitlines(keepends=True) if "kernel_add[" in line)
    candidates = {
        "add": IN_PLACE_ADD.replace("RESULT", "x + y"),
        "nothing written": IN_PLACE_ADD.replace("RESULT", "x"),
        "zero": IN_PLACE_ADD.replace("RESULT", "x * 0"),
        "nothing run": IN_PLACE_ADD.replace("RESULT", "x").replace(launch, ""),
    }
    outcomes = {}
    for name, source in candidates.items():
        kernel = KernelFile.parse(source, Path("add_.py"))
        job = Job(Plan("aten::add_.Tensor", "aten::add_.Tensor"), kernel, (case,))
        (verdict,) = judge.judge([job]).values()
        outcomes[name] = verdict.outcome
    assert outcomes == {
        "add": Outcome.PASS, "nothing written": Outcome.WRONG, "zero": Outcome.WRONG, "nothing run": Outcome.CHEAT,
    }  # fmt: skip


STRIDED = {
    "expanded": (lambda: torch.rand(5, 1).expand(5, 7), 5),
    "overlapping": (lambda: torch.rand(32).as_strided((6, 3), (2, 1), 3), 13),
    "slice with offset": (lambda: torch.rand(4, 16)[1:, 3:7], 36),
    "channels last": (lambda: torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last), 120),
    "transposed": (lambda: torch.rand(3, 5).t(), 15),
    "0-dim": (lambda: torch.rand(9)[7], 1),
    "no elements": (lambda: torch.rand(3, 4)[:, 2:2], 0),
    "4 bytes behind a boundary": (lambda: torch.rand(33)[1:], 32),
}


@pytest.mark.parametrize(("make", "elements"), STRIDED.values(), ids=STRIDED.keys())
def test_03_strides_offsets_and_alignment(record, make, elements):
    """elements: what lies between the first and the last, which is all that is stored."""
    whole = torch.rand(200)
    x, parts = make(), [whole[20:30], whole[51:60]]
    trace = record(lambda: (torch.neg(x), torch.cat(parts)))
    negated, joined = trace.calls()
    back = unpack(trace.packed(negated))["self"]
    assert (back.shape, back.stride(), back.dtype) == (x.shape, x.stride(), x.dtype)
    assert torch.equal(back, x)
    assert back.numel() == 0 or back.data_ptr() % ALIGNMENT == x.data_ptr() % ALIGNMENT
    assert negated.nbytes == 4 * elements
    first, second = unpack(trace.packed(joined))["tensors"]
    assert (second.storage_offset() - first.storage_offset(), joined.nbytes) == (31, 4 * 40)
    assert second.data_ptr() % ALIGNMENT == parts[1].data_ptr() % ALIGNMENT
    assert verify(trace).exact == 2


def test_04_numbers_and_enumerations(record):
    x, i = torch.ones(2, 3, 4, 4), torch.ones(3, dtype=torch.int32)

    def work():
        i * (1 + 2j)
        i + -0.0
        torch.clamp(x, min=None, max=math.inf)
        x.clone(memory_format=torch.channels_last)
        torch.empty((2,), layout=torch.strided, dtype=torch.float64)
        i.sum(dtype=torch.int16)

    trace = record(work)
    product, plus, clamp, clone, empty, total = (unpack(trace.packed(r)) for r in trace.calls())
    results = [r.results["return"]["dtype"] for r in trace.calls()]
    assert (type(product["other"]), product["other"]) == (complex, 1 + 2j)
    assert (type(plus["other"]), math.copysign(1, plus["other"])) == (float, -1)
    assert (clamp["min"], clamp["max"]) == (None, math.inf)
    assert clone["memory_format"] is torch.channels_last
    assert (empty["layout"], empty["dtype"]) == (torch.strided, torch.float64)
    assert total["dtype"] is torch.int16
    assert results == ["complex64", "float32", "float32", "float32", "float64", "int16"]
    assert verify(trace).exact == 5


DTYPES = [
    "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "complex32", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:ComplexHalf:UserWarning")
@pytest.mark.parametrize("name", DTYPES)
def test_05_every_dtype_keeps_its_bits(record, name):
    dtype = getattr(torch, name)
    raw = (torch.arange(256) % (2 if dtype is torch.bool else 256)).to(torch.uint8)
    trace = record(lambda: raw.view(dtype).clone())
    (call,) = (r for r in trace.calls() if r.overload == "aten::clone")
    back = unpack(trace.packed(call))["self"]
    assert back.dtype is dtype
    assert torch.equal(back.view(torch.uint8), raw)  # NaNs too
    assert verify(trace).exact == 1


@pytest.mark.parametrize("coalesced", [True, False])
def test_05_sparse_tensors(record, coalesced):
    x = torch.sparse_coo_tensor([[2, 0, 2]], torch.arange(6.0).view(3, 2), (4, 2), check_invariants=True)
    x = x.coalesce() if coalesced else x
    trace = record(lambda: x.to_dense())
    call = next(r for r in trace.calls() if r.overload == "aten::_to_dense")
    back = unpack(trace.packed(call))["self"]
    assert (back.is_coalesced(), back.shape) == (coalesced, x.shape)
    assert torch.equal(back._indices(), x._indices()) and torch.equal(back._values(), x._values())
    report = verify(trace)
    assert report.exact >= 1 and not report.mismatches and not report.not_comparable


UNSUPPORTED = {
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8).dequantize(),
    "mkldnn": lambda: torch.relu(torch.ones(2, 2).to_mkldnn()).to_dense(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).sin().to_padded_tensor(0.0),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("reason", UNSUPPORTED)
def test_05_what_is_not_supported_says_why(record, capsys, reason):
    expected, found = UNSUPPORTED[reason](), []
    trace = record(lambda: found.append(UNSUPPORTED[reason]()))
    assert torch.equal(found[0], expected)
    assert trace.manifest["errors"] == {}
    report = verify(trace)
    assert not report.mismatches
    assert set(report.not_comparable) - {"uninitialised result"} == {f"{reason} tensor cannot be recorded"}
    assert run(["trace", "show", str(trace.path)]) == 0
    assert f"{reason} tensor" in capsys.readouterr().out


# Counted with a plain dispatch mode, one step after the first. DLRM has 8 tables and 7 linear layers, nanoGPT
# 27 parameters of which 18 decay.
NANOGPT_BACKWARD = {
    "t": 68, "view": 52, "mm": 34, "detach": 32, "transpose.int": 16, "native_layer_norm_backward": 9, "add.Tensor": 9,
    "gelu_backward": 4, "_scaled_dot_product_flash_attention_for_cpu_backward": 4, "cat": 4, "ones_like": 1,
    "embedding_dense_backward": 2, "nll_loss_backward": 1, "_log_softmax_backward_data": 1, "sum.dim_IntList": 1,
}  # fmt: skip
CLIP = {
    "_foreach_norm.Scalar": 1, "stack": 1, "linalg_vector_norm": 1, "add.Tensor": 1, "reciprocal": 1, "mul.Tensor": 1,
    "clamp": 1, "_foreach_mul_.Tensor": 1,
}  # fmt: skip
NANOGPT_OPTIMIZERS = {
    "adamw": {
        "add_.Tensor": 54, "mul_.Tensor": 45, "lerp_.Scalar": 27, "addcmul_": 27, "sqrt": 27, "div.Tensor": 27,
        "addcdiv_": 27, "_local_scalar_dense": 27,
    },
    "adamw-fused": {"_foreach_add_.Scalar": 2, "_fused_adamw_": 2},
    "sgd": {"add.Tensor": 18, "add_.Tensor": 27},
}  # fmt: skip
DLRM_FORWARD = {
    "_embedding_bag": 8, "select.int": 18, "t": 7, "addmm": 7, "detach": 7, "relu": 6, "cat": 2, "view": 1,
    "transpose.int": 1, "bmm": 1, "index.Tensor": 1, "sigmoid": 1,
}  # fmt: skip
DLRM_BACKWARD = {
    "detach": 45, "t": 27, "_indices": 16, "mm": 13, "slice.Tensor": 11, "view": 8, "_embedding_bag_backward": 8,
    "_values": 8, "clone": 8, "sum.dim_IntList": 7, "threshold_backward": 6, "transpose.int": 3, "bmm": 2,
    "add.Tensor": 2, "ones_like": 1, "binary_cross_entropy_backward": 1, "sigmoid_backward": 1, "new_zeros": 1,
    "index_put": 1,
}  # fmt: skip
DLRM_OPTIMIZERS = {
    "sgd": {"add_.Tensor": 22},
    "adagrad": {
        "add_.Tensor": 60, "_local_scalar_dense": 22, "addcmul_": 14, "sqrt": 14, "addcdiv_": 14, "is_coalesced": 8,
        "_coalesce": 8, "_indices": 8, "detach": 24, "_values": 16, "pow.Tensor_Scalar": 8, "sparse_mask": 8,
        "_sparse_coo_tensor_with_dims_and_tensors": 16, "sqrt_": 8, "div.Tensor": 8,
    },
}  # fmt: skip


def counts_by_phase(path, training):
    """Calls by overload of each phase, in the second step."""
    training.step(next(training.batches))
    batch = next(training.batches)
    with Recorder(path, model=training.model) as recorder:
        training.step(batch, recorder.phase)
    found = {}
    for s in Trace.open(path).signatures.values():
        for phase, calls in s.phases.items():
            found.setdefault(phase, Counter())[s.overload.removeprefix("aten::")] += calls
    return found


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="decompositions change between versions")
@pytest.mark.parametrize("optimizer", NANOGPT_OPTIMIZERS)
def test_07_operators_of_nanogpt(tmp_path, optimizer):
    found = counts_by_phase(tmp_path / "a.trace", load_target("nanogpt", batch=1, optimizer=optimizer).training)
    assert found["backward"] == NANOGPT_BACKWARD
    assert found["clip"] == CLIP
    assert found["optimizer"] == NANOGPT_OPTIMIZERS[optimizer]


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="decompositions change between versions")
@pytest.mark.parametrize("optimizer", DLRM_OPTIMIZERS)
def test_07_operators_of_dlrm(tmp_path, optimizer):
    target = load_target("dlrm", {"tables": "8", "rows": "100"}, batch=4, optimizer=optimizer)
    found = counts_by_phase(tmp_path / "a.trace", target.training)
    assert found["forward"] == DLRM_FORWARD
    assert found["loss"] == {"binary_cross_entropy": 1}
    assert found["backward"] == DLRM_BACKWARD
    assert found["optimizer"] == DLRM_OPTIMIZERS[optimizer]


def rewritten(path, change):
    """The trace with its stored calls changed, each with a valid checksum."""
    lines = [json.loads(line.rpartition(b" ")[0]) for line in (path / CALLS).read_bytes().splitlines()]
    for line in lines:
        change(line)
    (path / CALLS).write_bytes(b"".join(map(encode_line, lines)))
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["files"][CALLS] = (path / CALLS).stat().st_size
    (path / MANIFEST).write_text(json.dumps(manifest))
    return Trace.open(path)


def test_08_without_the_state_of_the_generator_nothing_is_exact(record):
    x, p = torch.rand(100), torch.full((100,), 0.5)
    trace = record(lambda: (torch.dropout(x, 0.5, True), torch.bernoulli(p), torch.rand_like(x)))
    random = {r.id for r in trace.calls() if r.kind == "random"}
    assert len(random) == 3
    exact = verify(trace).exact
    report = verify(rewritten(trace.path, lambda call: call.update(rng=None)))
    assert report.exact == exact - 3
    assert report.synthesised == 3


GARBAGE = """
import sys, torch
from capture import Recorder
from models import nanogpt
torch.set_num_threads(1)
print(torch.empty(4096).view(torch.uint8)[2048].item())  # what the heap is filled with
config = nanogpt.Config(n_layer=1, n_head=2, n_embd=16, block_size=8, batch=2, dropout=0.2)
training = nanogpt.build(config)
with Recorder(sys.argv[1], model=training.model, per_signature=2) as recorder:
    for _ in range(2):
        training.step(next(training.batches), recorder.phase)
        recorder.step()
    for fill in ("zero_", "normal_", "uniform_", "exponential_", "bernoulli_"):
        getattr(torch.empty(100), fill)()
    torch.empty(100).fill_(2.0)
    torch.empty(100).copy_(torch.ones(100))
    torch.mm(torch.eye(8), torch.eye(8), out=torch.empty(8, 8))
    torch.empty(8, 8, 8).resize_(100).zero_()
"""


def test_09_what_the_heap_held_before_is_not_in_the_trace(tmp_path):
    """glibc fills what it allocates with the complement of MALLOC_PERTURB_."""
    children = []
    for fill in (0x55, 0xAA):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "MALLOC_PERTURB_": str(fill)}
        command = [sys.executable, "-c", GARBAGE, str(tmp_path / f"{fill}.trace")]
        children.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    assert [child.communicate(timeout=120)[0] for child in children] == [f"{0xAA}\n", f"{0x55}\n"]
    first, second = (Trace.open(tmp_path / f"{fill}.trace") for fill in (0x55, 0xAA))
    assert first.shards.keys() == second.shards.keys()
    assert first.signatures == second.signatures
    assert without_addresses(first) == without_addresses(second)
    assert len(without_addresses(first)) > 100


def without_addresses(trace):
    """The lines of stored calls but for their checksums and for where in memory arguments lay."""
    return [
        re.sub(rb'"align":\d+', b"", line.rpartition(b" ")[0])
        for line in (trace.path / CALLS).read_bytes().splitlines()
    ]


def test_10_an_operator_that_cannot_be_encoded(tmp_path, monkeypatch, capsys):
    honest = capture.tape.lay_out

    def broken(arguments, write_only):
        if "mat2" in arguments:
            raise TypeError("no such dtype")
        return honest(arguments, write_only)

    monkeypatch.setattr(capture.tape, "lay_out", broken)
    settings = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    status = run(["capture", "nanogpt", "--batch", "2", *settings, "--out", str(tmp_path / "a.trace"), "--json"])
    out, err = capsys.readouterr()
    training = load_target("nanogpt", SMALL, batch=2).training
    assert json.loads(out)["losses"] == [training.step(next(training.batches)).item()]
    (line,) = [line for line in err.splitlines() if line.startswith("enable: ")]  # beside a bar after a second
    assert status == 1
    assert line.startswith("enable: the recorder failed on 1 operators") and "a.trace" in line
    trace = Trace.open(tmp_path / "a.trace")
    errors = trace.manifest["errors"]
    assert set(errors) == {"aten::mm"} and errors["aten::mm"]["first"] == "TypeError: no such dtype"
    assert errors["aten::mm"]["count"] == sum(s.overload == "aten::mm" for s in trace.signatures.values())
    assert {s.overload for s in trace.signatures.values() if not s.samples} == {"aten::mm"}


RANKS = """
import os, torch, torch.distributed as dist
def make():
    store = f"file://{os.getcwd()}/store"
    dist.init_process_group("gloo", init_method=store, rank=int(os.environ["RANK"]), world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    batch = torch.full((2, 4), float(dist.get_rank() + 1))
    return model, batch, lambda model, x: model(x).sum(), torch.optim.SGD(model.parameters(), 0.1)
"""


def test_15_the_command_in_each_of_two_ranks(tmp_path):
    (tmp_path / "ranks.py").write_text(textwrap.dedent(RANKS))
    words = ("-m", "enable", "capture", "ranks:make", "--out", "out.trace")
    with ThreadPoolExecutor(2) as ranks:
        for done in ranks.map(lambda rank: python(*words, cwd=tmp_path, RANK=rank), "01"):
            assert done.returncode == 0, done.stderr
    traces = [Trace.open(tmp_path / f"out-rank{rank}.trace") for rank in range(2)]
    assert sorted(p.name for p in tmp_path.glob("*.trace")) == ["out-rank0.trace", "out-rank1.trace"]
    for rank, trace in enumerate(traces):
        assert trace.complete and verify(trace).passed
        product = next(r for r in trace.calls() if r.overload == "aten::addmm")
        assert unpack(trace.packed(product))["mat1"].unique().tolist() == [rank + 1.0]
        assert {"forward", "backward", "optimizer"} <= {p for s in trace.signatures.values() for p in s.phases}
        assert trace.manifest["skipped"]["collectives"] > 0
