"""Recording whole training steps: nothing changes, and the replay is bit-exact."""

import threading

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from capture import Recorder
from capture.targets import load_target
from traces import Trace, verify

SMALL = {"n_layer": "2", "n_head": "2", "n_embd": "16", "block_size": "8"}
TABLES = {"tables": "3", "rows": "50", "dim": "4"}
TARGETS = {
    "adamw": lambda: load_target("nanogpt", SMALL, batch=3),
    "adamw-foreach": lambda: load_target("nanogpt", SMALL, batch=3, optimizer="adamw-foreach"),
    "adamw-fused": lambda: load_target("nanogpt", SMALL, batch=3, optimizer="adamw-fused"),
    "sgd": lambda: load_target("nanogpt", SMALL, batch=3, optimizer="sgd"),
    "dropout": lambda: load_target("nanogpt", {**SMALL, "dropout": "0.2"}, batch=3),
    "dlrm-sgd": lambda: load_target("dlrm", TABLES, batch=4),
    "dlrm-adagrad": lambda: load_target("dlrm", TABLES, batch=4, optimizer="adagrad"),
}
targets = pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS.keys())


class Names(TorchDispatchMode):
    """The stream of operators that a program issues."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def train(training, steps=3):
    """Losses, final parameters, and the next random numbers, which tell how many were drawn; all operators issued."""
    torch.manual_seed(0)
    with Names() as names:
        losses = [training.step(next(training.batches)) for _ in range(steps)]
    drawn = torch.rand(4)
    return [*losses, *(p.detach().clone() for p in training.model.parameters()), drawn], names.seen


@targets
def test_06_recording_changes_nothing(make, tmp_path):
    expected, operators = train(make().training)
    target = make()
    with Recorder(tmp_path / "a.trace", per_signature=1000, model=target.training.model) as recorder:
        found, operators_recorded = train(target.training)
    assert not recorder.errors
    assert len(found) == len(expected)
    for a, b in zip(expected, found, strict=True):
        assert torch.equal(a, b)
    assert operators_recorded == operators


def test_06_composites_that_have_a_kernel_stay_whole(tmp_path):
    """silu_backward can be made of other operators, in other bits; the CPU has a kernel for it."""

    def trained():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 5), nn.Mish())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batch = torch.rand(8, 4)
        for _ in range(4):
            model(batch).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return [p.detach() for p in model.parameters()]

    expected = trained()
    with Recorder(tmp_path / "a.trace"):
        found = trained()
    assert all(map(torch.equal, expected, found))
    trace = Trace.open(tmp_path / "a.trace")
    calls = {s.overload: s.calls for s in trace.signatures.values()}
    assert calls["aten::silu_backward"] == calls["aten::mish_backward"] == 4 and "aten::sigmoid" not in calls
    assert trace.manifest["whole"] == ["aten::mish_backward", "aten::silu_backward"]
    assert verify(trace).passed


@targets
def test_07_every_call_replays_bit_exactly(make, tmp_path):
    training = make().training
    with Recorder(tmp_path / "a.trace", per_signature=3) as recorder:
        for _ in range(2):
            training.step(next(training.batches))
            recorder.step()
    report = verify(Trace.open(tmp_path / "a.trace"))
    assert report.mismatches == []
    assert report.exact > 50
    assert set(report.not_comparable) <= {"uninitialised result"}


def counted(trace):
    """Calls by phase."""
    phases = {}
    for signature in trace.signatures.values():
        for phase, calls in signature.phases.items():
            phases[phase] = phases.get(phase, 0) + calls
    return phases


def test_07_operators_of_nanogpt_are_those_that_pytorch_issues(tmp_path):
    """Every ATen call is counted once; markers of the profiler compute nothing."""
    training = TARGETS["adamw"]().training
    batch = next(training.batches)
    with Recorder(tmp_path / "a.trace"), Names() as names:
        training.step(batch)
    issued = [name for name in names.seen if not name.startswith("profiler")]
    assert Trace.open(tmp_path / "a.trace").manifest["calls"] == len(issued)


FORWARD = {
    "view": 35, "t": 17, "mm": 17, "_unsafe_view": 17, "transpose.int": 16, "add.Tensor": 9, "native_layer_norm": 9,
    "detach": 5, "split.Tensor": 4, "_scaled_dot_product_flash_attention_for_cpu": 4, "gelu": 4, "embedding": 2,
    "arange.start": 1, "_log_softmax": 1, "nll_loss_forward": 1,
}  # fmt: skip


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="decompositions change between versions")
def test_07_operators_of_the_published_model(tmp_path):
    """Counted by hand on the published nanoGPT, 4 layers, one step after the first."""
    training = load_target("nanogpt", batch=1).training
    training.step(next(training.batches))
    batch = next(training.batches)
    with Recorder(tmp_path / "a.trace", model=training.model) as recorder:
        training.step(batch, recorder.phase)
    trace = Trace.open(tmp_path / "a.trace")
    forward = {}
    for s in trace.signatures.values():
        calls = s.phases.get("forward", 0) + s.phases.get("loss", 0)
        forward[s.overload] = forward.get(s.overload, 0) + calls
    assert {name: n for name, n in forward.items() if n} == {f"aten::{name}": n for name, n in FORWARD.items()}
    assert (counted(trace)["backward"], counted(trace)["clip"]) == (238, 8)


def test_pausing(tmp_path):
    layer = nn.Linear(2, 2)
    with Recorder(tmp_path / "a.trace", model=layer) as recorder:
        with recorder.pause():
            layer(torch.ones(2))
        torch.ones(2).exp()
    assert [r.overload for r in Trace.open(tmp_path / "a.trace").calls()] == ["aten::ones", "aten::exp"]


def test_phases_and_modules(tmp_path):
    training = TARGETS["adamw"]().training
    with Recorder(tmp_path / "a.trace", model=training.model, per_signature=100) as recorder:
        with recorder.pause():  # as `enable capture` does before each step
            batch = next(training.batches)
        training.step(batch, recorder.phase)
    trace = Trace.open(tmp_path / "a.trace")
    assert set(counted(trace)) == {"forward", "loss", "backward", "clip", "optimizer"}
    where = {(r.phase, r.module, r.overload) for r in trace.calls()}
    assert ("forward", "h.1.mlp.c_fc", "aten::mm") in where
    assert ("backward", "h.1.mlp.c_fc", "aten::mm") in where
    assert ("forward", "h.0.attn", "aten::_scaled_dot_product_flash_attention_for_cpu") in where
    assert ("backward", "h.0.attn", "aten::_scaled_dot_product_flash_attention_for_cpu_backward") in where
    assert ("backward", "ln_f", "aten::native_layer_norm_backward") in where
    assert ("loss", "", "aten::nll_loss_forward") in where
    assert ("backward", "", "aten::nll_loss_backward") in where
    assert ("optimizer", "", "aten::addcdiv_") in where


def test_phases_are_found_without_being_told(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(tmp_path / "a.trace") as recorder:
        loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        optimizer.step()
        with recorder.phase("evaluate"):
            model(torch.ones(2, 3))
    trace = Trace.open(tmp_path / "a.trace")
    phases = {s.overload: set(s.phases) for s in trace.signatures.values()}
    assert phases["aten::gelu"] == {"forward", "evaluate"}
    assert phases["aten::gelu_backward"] == {"backward"}
    assert phases["aten::add_.Tensor"] == {"optimizer"}
    modules = {r.overload: r.module for r in trace.calls()}
    assert modules["aten::gelu"] == modules["aten::gelu_backward"] == "Sequential.1"


def test_an_optimizer_that_raises_does_not_keep_its_phase(tmp_path):
    parameter = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    parameter.grad = torch.ones(2)
    optimizer.param_groups[0]["lr"] = None
    with Recorder(tmp_path / "a.trace"):
        with pytest.raises(TypeError):
            optimizer.step()
        nn.Softplus()(torch.ones(2))
    phases = {s.overload: set(s.phases) for s in Trace.open(tmp_path / "a.trace").signatures.values()}
    assert phases["aten::softplus"] == {"forward"}


def test_a_module_that_raises_is_left(tmp_path):
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError

    with Recorder(tmp_path / "a.trace"):
        with pytest.raises(ValueError):
            Broken()(torch.ones(2))
        torch.ones(2).cos()
    assert {r.module for r in Trace.open(tmp_path / "a.trace").calls()} == {""}


def test_16_threads_share_a_recorder(tmp_path):
    recorder = Recorder(tmp_path / "a.trace", per_signature=10_000)

    def work(i):
        with recorder:
            for _ in range(50):
                torch.full((i + 1,), 1.0).exp_()

    with recorder:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        work_here = torch.ones(7).exp_()
        for thread in threads:
            thread.join()
    assert work_here.numel() == 7
    trace = Trace.open(tmp_path / "a.trace")
    assert trace.manifest["calls"] == 3 * 50 * 2 + 2
    records = list(trace.calls())
    assert sorted(r.seq for r in records) == list(range(302))
    assert verify(trace).passed


def test_15_backward_in_another_thread_without_the_recorder_is_harmless(tmp_path):
    x = torch.ones(3, requires_grad=True)
    with Recorder(tmp_path / "a.trace"):
        loss = (x * 2).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert verify(Trace.open(tmp_path / "a.trace")).passed
