"""Acceptance test 15: what PyTorch does around a step is recorded as documented, and never raises."""

import textwrap
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from warm import python

from capture import Recorder, sim
from traces import Trace, verify

ROOT = Path(__file__).parents[2]


def overloads(path):
    return {s.overload for s in Trace.open(path).signatures.values()}


def test_15_a_compiled_model_is_recorded_as_its_eager_operators(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())
    x = torch.rand(2, 4)
    compiled = torch.compile(model, backend="eager")
    expected = compiled(x)
    with Recorder(tmp_path / "a.trace") as recorder:
        y = compiled(x)
        y.sum().backward()
    assert torch.equal(y, expected) and not recorder.errors
    assert {"aten::addmm", "aten::gelu", "aten::gelu_backward"} <= overloads(tmp_path / "a.trace")
    assert torch.equal(compiled(x), expected)  # and runs compiled again afterwards


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_15_higher_order_operators(tmp_path):
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.rand(1, 2, 16, 16)
    flag = torch.tensor(True)
    branches = (lambda x: x.sin(), lambda x: x.cos())
    expected = flex_attention(q, q, q)
    with Recorder(tmp_path / "a.trace") as recorder:
        attended = flex_attention(q, q, q)
        chosen = torch.cond(flag, *branches, (q,))
    assert not recorder.errors
    torch.testing.assert_close(attended, expected)
    assert torch.equal(chosen, q.sin())
    assert recorder.skipped["higher-order operators"] >= 1


def test_15_custom_operators(tmp_path):
    @torch.library.custom_op("enabletest::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with Recorder(tmp_path / "a.trace") as recorder:
        twice(torch.ones(3))
    assert not recorder.errors
    assert "enabletest::twice" in overloads(tmp_path / "a.trace")
    assert verify(Trace.open(tmp_path / "a.trace")).not_comparable == {"not an ATen operator": 1}


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="from torch 2.13 on")
@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_15_operators_that_pytorch_makes_of_others_in_python(tmp_path, device):
    """They are on every device what they call, also in the backward pass."""
    from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

    sim.install()
    generator = torch.Generator().manual_seed(1)
    x, weight = (torch.randn(n, 4, generator=generator).to(device).requires_grad_() for n in (6, 5))
    target = torch.tensor([0, 4, 2, 1, 1, 3]).to(device)
    with sim.executing(sim.on_cpu), Recorder(tmp_path / "a.trace") as recorder:
        loss = F.linear_cross_entropy(x, weight, target, options=LinearCrossEntropyOptions(batch_chunk_size=4))
        loss.backward()
        grads = [loss.detach().cpu(), x.grad.cpu(), weight.grad.cpu()]
    assert not recorder.errors
    assert all(name.startswith("aten::") for name in overloads(tmp_path / "a.trace"))
    plain = [t.detach().cpu().requires_grad_() for t in (x, weight)]
    expected = F.cross_entropy(F.linear(*plain), target.cpu())
    expected.backward()
    torch.testing.assert_close(grads, [expected.detach(), *[t.grad for t in plain]])


@pytest.mark.parametrize("device", ["cpu", "sim"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_15_packed_sequences(tmp_path, device, batch_first):
    """What packing calls, whose lengths and batch sizes stay in host memory, and its gradient."""
    sim.install()
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(*((3, 6) if batch_first else (6, 3)), 4, generator=generator)
    network = torch.nn.LSTM(4, 5, batch_first=batch_first, bidirectional=True)
    lengths = torch.tensor([4, 6, 4])

    def step(device):
        cells, given = deepcopy(network).to(device), x.clone().to(device).requires_grad_()
        packed = pack_padded_sequence(given, lengths, batch_first=batch_first, enforce_sorted=False)
        out, _ = pad_packed_sequence(cells(packed)[0], batch_first=batch_first)
        out.square().sum().backward()
        return out.detach().cpu(), given.grad.cpu(), packed.batch_sizes

    expected = step("cpu")
    with sim.executing(sim.on_cpu), Recorder(tmp_path / "a.trace") as recorder:
        found = step(device)
    assert not recorder.errors
    assert not any("pack" in name for name in overloads(tmp_path / "a.trace"))
    torch.testing.assert_close(found, expected)
    assert verify(Trace.open(tmp_path / "a.trace")).passed
    with Recorder(tmp_path / "b.trace"), pytest.raises(RuntimeError, match="decreasing order"):
        pack_padded_sequence(x, torch.tensor([4, 6, 4]), batch_first=batch_first)


def test_15_lengths_of_a_ctc_loss_in_host_memory():
    sim.install()
    scores = torch.randn(12, 2, 5).log_softmax(-1)
    targets, lengths = torch.randint(1, 5, (2, 3)), (torch.tensor([12, 10]), torch.tensor([3, 2]))
    with sim.executing(sim.on_cpu):
        given = scores.to("sim").requires_grad_()
        F.ctc_loss(given, targets.to("sim"), *lengths).backward()
        found = given.grad.cpu()
    plain = scores.clone().requires_grad_()
    F.ctc_loss(plain, targets, *lengths).backward()
    torch.testing.assert_close(found, plain.grad)


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_15_operators_of_fsdp(tmp_path, device):
    """Of FSDP's copies around collectives what they call, as every device is asked for it."""
    import torch.distributed.fsdp  # defines them

    sim.install()
    with sim.executing(sim.on_cpu), Recorder(tmp_path / "a.trace") as recorder:
        parts = [torch.full((4,), 1.0, device=device), torch.full((2,), 2.0, device=device)]
        whole, columns = torch.zeros(2, 6, device=device), [torch.empty(2, n, device=device) for n in (4, 2)]
        torch.ops.fsdp.all_gather_copy_in(parts, whole.view(12), [4, 2], 6, 1)  # into the place of rank 1
        torch.ops.fsdp.split_with_sizes_copy(whole, [4, 2], 1, out=columns)
        torch.ops.fsdp.chunk_cat(columns, 0, 2, out=torch.empty(2, 6, device=device))
        found = [t.tolist() for t in columns]
    assert not recorder.errors and found == [[[0] * 4, [1] * 4], [[0] * 2, [2] * 2]]
    names = overloads(tmp_path / "a.trace")
    assert {"aten::_foreach_copy_", "aten::split_with_sizes_copy.out", "aten::_chunk_cat.out"} <= names
    assert all(name.startswith("aten::") for name in names)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_15_data_loaders(tmp_path, workers):
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(8, 3)), 4, num_workers=workers)
    with Recorder(tmp_path / "a.trace") as recorder:
        for (x,) in data:
            F.relu(x)
    assert not recorder.errors
    assert {s.overload: s.calls for s in Trace.open(tmp_path / "a.trace").signatures.values()}["aten::relu"] == 2


def test_15_distributed_data_parallel(tmp_path):
    """Two ranks, each with a trace of its own; the collectives are counted as skipped."""
    program = """
        import sys, torch, torch.distributed as dist
        from capture import Recorder
        rank, directory = int(sys.argv[1]), sys.argv[2]
        dist.init_process_group("gloo", init_method=f"file://{directory}/store", rank=rank, world_size=2)
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        with Recorder(f"{directory}/step.trace") as recorder:
            model(torch.full((2, 4), float(rank + 1))).sum().backward()
            dist.all_reduce(torch.ones(2))
        assert not recorder.errors, recorder.errors
        assert recorder.skipped["collectives"], recorder.skipped
        dist.destroy_process_group()
    """
    with ThreadPoolExecutor(2) as ranks:
        code = textwrap.dedent(program)
        for done in ranks.map(lambda rank: python("-c", code, rank, tmp_path, cwd=ROOT), range(2)):
            assert done.returncode == 0, done.stderr
    for r in range(2):
        assert "aten::addmm" in overloads(tmp_path / f"step-rank{r}.trace")
