"""The recorder on a GPU. Run on a machine with one: pytest -m gpu tests/capture/test_cuda.py"""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F

from capture import Recorder
from capture.device import hashes
from capture.limits import Limits
from models import nanogpt
from traces import Trace, verify
from traces.replay import available
from traces.values import unpack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def arguments(trace, overload, number=0):
    record = [r for r in trace.calls() if r.overload == overload][number]
    return unpack(trace.packed(record))


def test_16_a_slow_producer_on_another_stream_is_waited_for(tmp_path):
    n = 1 << 24
    stream = torch.cuda.Stream()
    with Recorder(tmp_path / "a.trace"):
        with torch.cuda.stream(stream):
            x = torch.zeros(n, device="cuda")
            torch.cuda._sleep(200_000_000)
            x.fill_(3.0)
        torch.cuda.current_stream().wait_stream(stream)
        y = x.exp()
        x.zero_()  # the copy to the host may still be under way
    assert y[0].item() == pytest.approx(20.0855, rel=1e-4)
    assert bool((arguments(Trace.open(tmp_path / "a.trace"), "aten::exp")["self"] == 3).all())


def test_16_an_argument_that_is_freed_at_once_keeps_its_contents(tmp_path):
    with Recorder(tmp_path / "a.trace", per_signature=50, queue_bytes=4 << 20):
        for i in range(50):
            torch.full((1 << 21,), float(i), device="cuda").exp()
    trace = Trace.open(tmp_path / "a.trace")
    for i in range(50):
        assert bool((arguments(trace, "aten::exp", i)["self"] == i).all())


def test_16_contents_larger_than_all_rooms_on_the_device_are_those_before_the_call(tmp_path):
    x = torch.arange(1 << 26, dtype=torch.int32, device="cuda")
    expected = x.cpu()
    with Recorder(tmp_path / "a.trace"):
        x.neg()
        x.zero_()  # while most of it still waits for the bus
    assert torch.equal(arguments(Trace.open(tmp_path / "a.trace"), "aten::neg")["self"], expected)


def test_16_backward_on_the_device_thread_is_recorded_whole(tmp_path):
    training = nanogpt.build(nanogpt.Config(n_layer=2, batch=4), device="cuda")
    batch = next(training.batches)
    with Recorder(tmp_path / "a.trace", model=training.model) as recorder:
        training.step(batch, recorder.phase)
    trace = Trace.open(tmp_path / "a.trace")
    assert not recorder.errors
    records = list(trace.calls())
    assert [r.seq for r in records] == sorted(r.seq for r in records)
    assert {r.thread for r in records if r.phase == "backward"} >= {1}
    backward = [r for r in records if r.overload == "aten::native_layer_norm_backward"]
    assert backward and all(r.phase == "backward" and r.module for r in backward)


@pytest.mark.filterwarnings("ignore:Memory Efficient attention:UserWarning")
def test_a_recorded_step_changes_nothing(tmp_path):
    def train(path):
        training = nanogpt.build(
            nanogpt.Config(n_layer=2, batch=4, dropout=0.2, optimizer="adamw-fused"), device="cuda"
        )
        losses = []
        for i in range(3):
            batch = next(training.batches)
            if path is None:
                losses.append(training.step(batch).item())
            else:
                with Recorder(path / f"{i}.trace"):
                    losses.append(training.step(batch).item())
        return losses, [p.detach().cpu() for p in training.model.parameters()]

    torch.use_deterministic_algorithms(True, warn_only=True)
    (expected, weights), (losses, recorded) = train(None), train(tmp_path)
    torch.use_deterministic_algorithms(False)
    assert losses == expected
    assert all(torch.equal(a, b) for a, b in zip(weights, recorded, strict=True))


def test_a_trace_of_a_gpu_replays_there_to_the_bit_and_near_on_the_cpu(tmp_path):
    training = nanogpt.build(nanogpt.Config(n_layer=2, batch=4, optimizer="adamw-fused"), device="cuda")
    batch = next(training.batches)
    with Recorder(tmp_path / "a.trace") as recorder, torch.autocast("cuda", torch.bfloat16):
        training.step(batch, recorder.phase)
    report = verify(Trace.open(tmp_path / "a.trace"))
    assert report.close > 50
    assert not report.mismatches
    there = verify(Trace.open(tmp_path / "a.trace"), is_available=available)
    assert there.exact >= report.close
    assert not there.mismatches


def test_equal_contents_are_copied_once(tmp_path):
    x = torch.rand(1 << 22, device="cuda")
    with Recorder(tmp_path / "a.trace") as recorder:
        x.exp()
        x.sin()
        assert recorder.contents_bytes == x.numel() * 4
    assert sum(p.stat().st_size for p in (tmp_path / "a.trace").glob("blobs-*")) < 1.1 * x.numel() * 4


@pytest.mark.parametrize("n, start", [(1 << 20, 0), ((1 << 20) + 1, 0), (4097, 3), (1, 0)])
def test_a_device_hash_tells_contents_apart_and_their_order(n, start):
    def device_hash(raw):
        return hashes([raw])[0]

    x = torch.randint(0, 255, (n + start,), dtype=torch.uint8, device="cuda")[start:]
    assert device_hash(x) == device_hash(x.clone()) or start  # another alignment may be another word size
    assert n == 1 or device_hash(x) != device_hash(x.flip(0).contiguous())
    y = x.clone()
    y[n // 2] += 1
    assert device_hash(y) != device_hash(x.clone())
    assert device_hash(torch.zeros(16, dtype=torch.uint8, device="cuda")) != device_hash(
        torch.zeros(8, dtype=torch.uint8, device="cuda")
    )


def test_a_cuda_graph_is_counted_and_not_copied(tmp_path):
    x = torch.rand(1 << 20, device="cuda")
    F.gelu(x)
    graph = torch.cuda.CUDAGraph()
    with Recorder(tmp_path / "a.trace") as recorder, torch.cuda.graph(graph):
        y = F.gelu(x)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, F.gelu(x))
    assert not recorder.errors
    trace = Trace.open(tmp_path / "a.trace")
    assert "aten::gelu" in {s.overload for s in trace.signatures.values()}
    assert "aten::gelu" not in {r.overload for r in trace.calls()}


def test_limits_hold_on_the_device(tmp_path):
    limit = 8 << 20
    training = nanogpt.build(nanogpt.Config(n_layer=2, batch=64), device="cuda")
    batch = next(training.batches)
    with Recorder(tmp_path / "a.trace", **vars(Limits(max_bytes=limit))) as recorder:
        training.step(batch, recorder.phase)
    trace = Trace.open(tmp_path / "a.trace")
    assert trace.manifest["contents_bytes"] <= limit
    assert {"full", "seeded"} <= trace.manifest["levels"].keys()
    assert not verify(trace).mismatches


def test_a_user_who_interprets_kernels_is_recorded_all_the_same(tmp_path):
    program = """
        import sys, torch
        from capture import Recorder
        x = torch.randn(300, 1000, device="cuda")
        with Recorder(sys.argv[1]) as recorder:
            for _ in range(3):
                x.exp()
        assert not recorder.errors, recorder.errors
    """
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "a.trace")]
    subprocess.run(command, env=environment, check=True, timeout=60)  # in seconds; the interpreter took minutes
    assert verify(Trace.open(tmp_path / "a.trace")).passed
