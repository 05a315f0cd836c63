"""Device `sim`: what holds of a tensor, a module and an optimizer on any device, and what an empty device says."""

import copy
import io
import threading

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from capture import Recorder, sim
from traces import Trace, verify
from traces.exchange.repro import write_repro
from traces.overloads import name_of, of_cpus
from verify.cases.case import case_of, reference


@pytest.fixture
def cpu():
    with sim.executing(sim.on_cpu):
        yield


def on(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to("sim")


def test_an_empty_device_has_memory_views_transfers_and_item():
    x = torch.arange(6.0).view(2, 3).to("sim")
    assert x.device == torch.device("sim:0") and x.is_sim and not x.is_cpu
    assert x.t()[1:].cpu().tolist() == [[1.0, 4.0], [2.0, 5.0]]
    assert x.t().stride() == (1, 3) and x[1, 2].item() == 5.0
    assert torch.empty(2, 3, device="sim").shape == (2, 3)
    assert torch.equal(x.cpu(), torch.arange(6.0).view(2, 3))


@pytest.mark.parametrize(
    "work, name",
    [
        (lambda x: x + x, "aten::add.Tensor"),
        (lambda x: x.exp_(), "aten::exp_"),
        (lambda x: torch.zeros(3, device="sim"), "aten::zeros"),
        (lambda x: torch.arange(3, device="sim"), "aten::arange"),
        (lambda x: torch.tril_indices(3, 3, device="sim"), "aten::tril_indices"),
        (lambda x: x.to(torch.float16), "aten::_to_copy"),
        (lambda x: x.clone(), "aten::clone"),
    ],
)
def test_an_empty_device_names_what_it_lacks(work, name):
    with pytest.raises(NotImplementedError, match=f"^{name}: device sim has no kernel.*enable refine --op {name}$"):
        work(on(2, 2))


def test_executors_nest_and_are_undone():
    x, seen = on(2), []

    def spy(op, args, kwargs):
        seen.append(str(op))
        return op(*args, **kwargs)

    with sim.executing(sim.on_cpu):
        with sim.executing(spy):
            (x + 1).cpu()
        x.exp()
    assert seen == ["aten.add.Tensor"]
    with pytest.raises(NotImplementedError):
        x.exp()


def test_nothing_is_compiled_on_the_device():
    """The compiler would trace what the device itself does in Python, and the executor."""
    compiled, asked = [], []
    work = torch.compile(lambda x: x.exp() + 1, backend=lambda graph, inputs: compiled.append(graph) or graph)

    def spy(op, args, kwargs):
        asked.append(name_of(op))
        return op(*args, **kwargs)

    x = on(2)
    with sim.executing(spy):
        work(x)
    assert asked == ["aten::exp", "aten::add.Tensor"] and not compiled
    work(torch.ones(2))
    assert len(compiled) == 1, "elsewhere it is"


def test_views_alias_and_in_place_operators_write_through(cpu):
    x = torch.zeros(3, 4).to("sim")
    row, column = x[1], x.t()[2]
    row.fill_(7)
    column.add_(1)
    expected = torch.zeros(3, 4)
    expected[1] = 7
    expected[:, 2] += 1
    assert torch.equal(x.cpu(), expected)
    assert row.add_(0) is row
    y = x.view(12)
    y.mul_(2)
    assert torch.equal(x.cpu(), 2 * expected)
    assert x._version == y._version > 0


def test_out_arguments_are_written_and_resized(cpu):
    x, out = on(3, 4), torch.empty(3, 4, device="sim")
    assert torch.add(x, x, out=out) is out and torch.equal(out.cpu(), 2 * x.cpu())
    small = torch.empty(0, device="sim")
    assert torch.mul(x, 2, out=small) is small
    assert small.shape == (3, 4) and torch.equal(small.cpu(), 2 * x.cpu())
    values, indices = torch.empty(0, device="sim"), torch.empty(0, dtype=torch.int64, device="sim")
    torch.sort(x, out=(values, indices))
    assert torch.equal(values.cpu(), x.cpu().sort().values) and indices.shape == (3, 4)


def test_in_place_views_and_resize_change_the_shape(cpu):
    x = on(2, 3)
    x.t_()
    assert x.shape == (3, 2) and x.stride() == (1, 3)
    x.unsqueeze_(0)
    assert x.shape == (1, 3, 2)
    y = on(2, 3)
    y.resize_(5, 2)
    assert y.shape == (5, 2) and (y * 1).shape == (5, 2)


def test_dtype_promotion_and_numbers_from_the_host(cpu):
    x = torch.arange(3).to("sim")
    assert (x + 1.5).dtype is torch.float32 and (x * torch.tensor(2.0)).device.type == "sim"
    assert (x.half() + x.float()).dtype is torch.float32
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.ones(3)


def test_indexing(cpu):
    x = on(4, 5)
    assert torch.equal(x[torch.tensor([2, 0])].cpu(), x.cpu()[[2, 0]])
    assert torch.equal(x[x > 0].cpu(), x.cpu()[x.cpu() > 0])
    x[1, torch.tensor([0, 3]).to("sim")] = 9.0
    assert x.cpu()[1, [0, 3]].tolist() == [9.0, 9.0]


def test_under_inference_mode_composites_come_apart():
    """They arrive whole there, where autograd does not take them apart."""
    layer, seen = torch.nn.Linear(3, 2), []

    def spy(op, args, kwargs):
        seen.append(str(op))
        return op(*args, **kwargs)

    with sim.executing(sim.on_cpu):
        x = torch.ones(2, 3)
        moved, given = torch.nn.Linear(3, 2).to("sim"), x.to("sim")
        moved.load_state_dict(layer.state_dict())
        with sim.executing(spy), torch.inference_mode():
            found = moved(given).reshape(4)
    assert seen == ["aten.addmm.default"]
    assert torch.equal(found.cpu(), layer(x).reshape(4))


def register_silu_backward():
    library = torch.library.Library("aten", "IMPL")
    library.impl("silu_backward", lambda *args: pytest.fail("the executor is asked"), "PrivateUse1")
    return library


@pytest.mark.parametrize(
    "kernels, registered",
    [((), False), (("aten::silu_backward", "aten::mul.Tensor", "aten::linear"), False), ((), True)],
)
def test_composites_are_asked_for_whole_where_the_device_has_a_kernel(tmp_path, kernels, registered):
    """And in parts on a device that has none, both of the executor and in the trace."""
    here = torch.linspace(-3, 3, 7, requires_grad=True)
    F.silu(here).sum().backward()
    library = register_silu_backward() if registered else None
    seen = []

    def executor(op, args, kwargs):
        seen.append(str(op))
        return op(*args, **kwargs)

    try:
        with sim.executing(executor, kernels), Recorder(tmp_path / "a.trace"):
            there = here.detach().to("sim").requires_grad_()
            F.silu(there).sum().backward()
    finally:
        if library:
            library._destroy()
    whole = bool(kernels) or registered
    assert ("aten.silu_backward.default" in seen, "aten.sigmoid.default" in seen) == (whole, not whole)
    trace = Trace.open(tmp_path / "a.trace")
    overloads = {s.overload for s in trace.signatures.values()}
    assert ("aten::silu_backward" in overloads, "aten::sigmoid" in overloads) == (whole, not whole)
    assert trace.manifest["whole"] == (["aten::silu_backward"] if whole else [])
    torch.testing.assert_close(there.grad.cpu(), here.grad)
    assert sim.own_kernels() == []


class Cells(torch.nn.Module):
    """Cells one by one, from the state of zeros."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        found = self.cell(x[0])
        return found if isinstance(found, tuple) else (found,)


RECURRENT = {
    "lstm": lambda: torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True),
    "lstm projected": lambda: torch.nn.LSTM(4, 5, proj_size=3, bias=False),
    "gru": lambda: torch.nn.GRU(4, 5, num_layers=2, bidirectional=True),
    "gru without bias": lambda: torch.nn.GRU(4, 5, bias=False, batch_first=True),
    "rnn": lambda: torch.nn.RNN(4, 5),
    "lstm cell": lambda: Cells(torch.nn.LSTMCell(4, 5)),
    "gru cell": lambda: Cells(torch.nn.GRUCell(4, 5)),
}


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN:UserWarning")
@pytest.mark.parametrize("make", RECURRENT.values(), ids=RECURRENT.keys())
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_recurrent_layers_come_apart(make, mode, tmp_path):
    """Into what a device without fused cells has: neither the CPU's mkldnn_rnn_layer nor _thnn_fused_lstm_cell."""
    torch.manual_seed(0)
    here, x = make(), torch.randn(3, 2, 4)
    with sim.executing(sim.on_cpu):
        there, y = copy.deepcopy(here).to("sim"), x.to("sim")
        with Recorder(tmp_path / "a.trace") as recorder, mode():
            found = there(y)[0]
            if mode is torch.enable_grad:
                found.square().sum().backward()
        expected = here(x)[0]
        torch.testing.assert_close(found.detach().cpu(), expected.detach())
        if mode is torch.enable_grad:
            expected.square().sum().backward()
            for a, b in zip(here.parameters(), there.parameters(), strict=True):
                torch.testing.assert_close(b.grad.cpu(), a.grad)
    assert not recorder.errors
    trace = Trace.open(tmp_path / "a.trace")
    overloads = {s.overload for s in trace.signatures.values()}
    assert not [o for o in overloads if of_cpus(o) or "_thnn" in o] and "aten::tanh" in overloads
    assert verify(trace).passed


def test_a_device_with_a_fused_cell_is_asked_for_it():
    seen = []

    def spy(op, args, kwargs):
        seen.append(name_of(op))
        return op(*args, **kwargs)

    with sim.executing(sim.on_cpu):
        layer, x = torch.nn.LSTM(4, 5).to("sim"), torch.randn(3, 2, 4).to("sim")
        with sim.executing(spy, ["aten::_thnn_fused_lstm_cell"]):
            layer(x)
    assert seen.count("aten::_thnn_fused_lstm_cell") == 3 and "aten::tanh" not in seen


NARROW = {
    "histc": lambda d: torch.tensor([0, 1, 1, 3], dtype=torch.int32, device=d).histc(bins=4, min=0, max=3),
    "in place": lambda d: torch.tensor([2.0, 3.0], dtype=torch.float8_e5m2, device=d).add_(
        torch.tensor([2.0, 0.0], dtype=torch.float8_e5m2, device=d)
    ),
}


@pytest.mark.parametrize("work", NARROW.values(), ids=NARROW.keys())
def test_what_the_cpu_lacks_in_a_dtype_it_does_in_another(cpu, tmp_path, work):
    """The device is asked in the dtype of the program, and so it is recorded, counted, and replayed."""
    with pytest.raises((NotImplementedError, RuntimeError), match="not implemented for"):
        work("cpu")
    with Recorder(tmp_path / "a.trace") as recorder:
        found = [work("sim") for _ in range(4) if recorder.step() is None]
    dtype = found[0].dtype
    expected = torch.tensor([1, 2, 0, 1] if dtype is torch.int32 else [4.0, 3.0]).to(dtype)
    assert all(torch.equal(f.cpu().view(torch.uint8), expected.view(torch.uint8)) for f in found)
    assert not recorder.errors
    trace = Trace.open(tmp_path / "a.trace")
    overload = "aten::histc" if dtype is torch.int32 else "aten::add_.Tensor"
    assert [s.calls for s in trace.signatures.values() if s.overload == overload] == [4]
    assert "aten::_to_copy" not in {r.overload for r in trace.calls() if "float64" in str(r.header)}
    report = verify(trace)
    assert report.passed and not report.close, report.mismatches
    (judged,) = [reference(case_of(trace, r)) for r in trace.calls() if r.overload == overload]
    assert bytes(judged.native.data[judged.native.tensors[-1].group]) == bytes(expected.view(torch.uint8).tolist())


def test_errors_of_the_cpu_that_no_dtype_mends_stay(cpu):
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        on(2, 3) @ on(2, 3)
    for work in (lambda: on(2).half() & 1, lambda: on(2).int().normal_()):
        with pytest.raises((NotImplementedError, RuntimeError), match="not implemented for"):
            work()


def test_views_under_inference_mode_are_those_of_their_tensor(cpu):
    here = torch.ones(2, 3)
    there = here.to("sim")
    with torch.inference_mode():
        for x in (here, there):
            view, made = x[0], x + 1
            assert (view.is_inference(), made.is_inference(), made[0].is_inference()) == (False, True, True)
            view.mul_(2)
    assert here.tolist() == there.tolist() == [[2, 2, 2], [1, 1, 1]]


def test_factories_and_the_seed(cpu):
    torch.manual_seed(5)
    drawn = torch.randn(4, device="sim").cpu()
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.randn(4))
    assert torch.full((2,), 3, device="sim").tolist() == [3, 3]
    assert torch.eye(2, device="sim").cpu().equal(torch.eye(2))
    assert torch.tensor([1.0, 2.0], device="sim").sum().item() == 3.0
    assert torch.zeros_like(drawn.to("sim"), dtype=torch.int32).dtype is torch.int32


def test_autograd_equals_the_cpu(cpu):
    x = torch.randn(3, 4, requires_grad=True)
    y = x.detach().to("sim").requires_grad_()
    for t in (x, y):
        (F.gelu(t @ t.T).softmax(1)[:, :2].sum(0) ** 2).mean().backward()
    assert y.grad.device.type == "sim" and torch.equal(x.grad, y.grad.cpu())
    (grad,) = torch.autograd.grad((y**3).sum(), y, create_graph=True)
    grad.sum().backward()
    assert torch.isfinite(y.grad.cpu()).all()
    z = y.detach().to("cpu").requires_grad_()
    z.to("sim").sum().backward()
    assert z.grad.device.type == "cpu"


@pytest.mark.parametrize("threads", [1, 2])  # autograd's thread has the number of the first backward of the process
def test_backward_sums_with_the_threads_of_its_caller(threads):
    found, before = set(), torch.get_num_threads()

    def noting(op, args, kwargs):
        found.add((threading.get_ident() == main, torch.get_num_threads()))
        return sim.on_cpu(op, args, kwargs)

    main = threading.get_ident()
    torch.set_num_threads(threads)
    try:
        with sim.executing(noting):
            torch.ones(3, device="sim", requires_grad=True).exp().sum().backward()
    finally:
        torch.set_num_threads(before)
    assert found == {(True, threads), (False, threads)}


def test_errors_in_backward_reach_the_caller():
    with sim.executing(sim.on_cpu):
        y = on(3).requires_grad_().exp().sum()
    with pytest.raises(NotImplementedError, match="device sim has no kernel"):
        y.backward()


def test_errors_in_the_middle_of_a_recorded_backward_end_no_process(cpu, tmp_path):
    """Autograd's engine asks for the device's type while the error passes through it; see `Guard`."""

    def refuses(op, args, kwargs):
        if refuse:
            raise KeyError(str(op))
        return op(*args, **kwargs)

    with sim.executing(refuses), Recorder(tmp_path / "a.trace"):
        for attempt in range(20):
            refuse = False
            y = (on(3).requires_grad_().exp() * 2).tanh()
            gradient = on(3)
            refuse = True
            with pytest.raises(KeyError, match="tanh_backward"):
                if attempt % 2:
                    y.backward(gradient)
                else:
                    with sim.own_errors():
                        torch.autograd.backward([y], [gradient])


def test_modified_in_place_is_noticed(cpu):
    x = on(3).requires_grad_()
    y = x.exp()
    z = y.sum()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11, bias=False)
        self.norm = torch.nn.LayerNorm(8)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.head(self.norm(self.embedding(x)) * self.scale)


def test_a_module_keeps_its_ties_and_its_parameters(cpu):
    model = Tied().to("sim")
    assert model.head.weight is model.embedding.weight and isinstance(model.head.weight, torch.nn.Parameter)
    assert {p.device.type for p in model.parameters()} == {"sim"} and model.scale.device.type == "sim"
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embedding.weight and twin.head.weight is not model.head.weight
    back = model.to("cpu")
    assert {p.device.type for p in back.parameters()} == {"cpu"} and back.head.weight is back.embedding.weight
    assert type(back.head.weight) is torch.nn.Parameter


OPTIMIZERS = {
    "adamw loop": lambda p: torch.optim.AdamW(p, foreach=False),
    "adamw foreach": lambda p: torch.optim.AdamW(p, foreach=True),
    "adamw fused": lambda p: torch.optim.AdamW(p, fused=True),
    "sgd momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "adagrad": lambda p: torch.optim.Adagrad(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_equals_the_cpu(cpu, name):
    torch.manual_seed(0)
    model = Tied()
    twin = copy.deepcopy(model).to("sim")
    batches = [torch.randint(11, (4, 6)) for _ in range(3)]
    losses = []
    for each, device in ((model, "cpu"), (twin, "sim")):
        optimizer = OPTIMIZERS[name](each.parameters())
        losses.append([])
        for batch in batches:
            optimizer.zero_grad()
            x = batch.to(device)
            loss = F.cross_entropy(each(x).flatten(0, 1), x.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(each.parameters(), 1.0)
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert torch.allclose(model.head.weight, twin.head.weight.cpu(), atol=1e-6)


def test_checkpointing_recomputes_on_the_device(cpu):
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).to("sim"), on(2, 4).requires_grad_()
    model(x).sum().backward()
    expected = x.grad.cpu()
    x.grad = None
    checkpoint(model, x, use_reentrant=False).sum().backward()
    assert torch.equal(x.grad.cpu(), expected)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("where", [None, "cpu", "sim"])
def test_save_and_load(cpu, weights_only, where):
    model = Tied().to("sim")
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "parameter": model.norm.weight, "step": 3}, file)
    file.seek(0)
    found = torch.load(file, weights_only=weights_only, map_location=where)
    weight = found["model"]["head.weight"]
    assert weight.device.type == (where or "sim") and torch.equal(weight.cpu(), model.head.weight.cpu())
    assert found["parameter"].requires_grad
    fresh = Tied().to("sim")
    fresh.load_state_dict(found["model"])
    assert torch.equal(fresh.head.weight.cpu(), model.head.weight.cpu())


def test_printing(cpu):
    x = torch.tensor([1.0, 2.0]).to("sim")
    assert repr(x) == "tensor([1., 2.], device='sim:0')"
    x.requires_grad_()
    assert repr(x) == "tensor([1., 2.], device='sim:0', requires_grad=True)"
    assert "grad_fn=<ExpBackward0>" in repr(x.exp())
    assert f"{x.sum():.1f}" == "3.0" and str(torch.nn.Parameter(x.detach())).startswith(
        "Parameter containing:\ntensor("
    )
    with pytest.raises(TypeError, match="convert sim:0 device type tensor to numpy"):
        x.detach().numpy()


def test_a_data_loader_and_lists_of_tensors(cpu):
    loader = torch.utils.data.DataLoader(torch.arange(6.0), batch_size=4)
    assert [batch.to("sim").sum().item() for batch in loader] == [6.0, 9.0]
    assert torch.cat([on(2), on(3)]).shape == (5,) and len(on(6).split(2)) == 3
    torch._foreach_add_([x := on(2)], 1.0)
    assert torch.equal(x.cpu(), on(2).cpu() + 1)


def test_assigning_data(cpu):
    x, y = torch.nn.Parameter(on(3)), on(3) * 2
    x.data = y
    assert torch.equal(x.cpu(), y.cpu()) and torch.equal((x + 0).cpu(), y.cpu())
    x.data.mul_(0)
    assert not x.cpu().any()


def test_factories_are_recorded_and_replayed_to_the_bit(cpu, tmp_path):
    """As calls of the host, like all other calls on the device; one-file reproducers run where there is no device."""

    def build():
        x = torch.arange(6, device="sim", dtype=torch.float32) + torch.full((6,), 0.5, device="sim")
        return torch.nn.Linear(6, 2, device="sim")(x * torch.tensor([2.0], device="sim")), torch.eye(2, device="sim")

    torch.manual_seed(3)
    expected = [t.detach().cpu() for t in build()]
    torch.manual_seed(3)
    with Recorder(tmp_path / "a.trace") as recorder:
        found = [t.detach().cpu() for t in build()]
        assert torch.arange(3).to("sim", torch.bool).tolist() == [False, True, True]
    assert all(map(torch.equal, expected, found)) and not recorder.errors
    trace = Trace.open(tmp_path / "a.trace")
    report = verify(trace)
    assert report.mismatches == [] and not report.close
    assert set(report.not_comparable) <= {"uninitialised result"}
    calls = {r.overload: r for r in trace.calls()}
    for overload in ("aten::arange", "aten::full", "aten::eye", "aten::_to_copy"):
        assert "'device': 'cpu'" in str(calls[overload].header["tree"]["device"])
        assert "hash" in calls[overload].results["return"]
        write_repro(trace, calls[overload], tmp_path / overload)


def test_pinning_does_nothing_beside_the_device():
    from torch.utils.data import DataLoader, TensorDataset

    sim.install()
    batches = list(DataLoader(TensorDataset(torch.ones(4, 2)), 2, pin_memory=True))
    assert len(batches) == 2 and not torch.ones(2).pin_memory().is_pinned()
    torch.sim.empty_cache(), torch.sim.set_device(0), torch.sim.manual_seed(3)
    assert torch.equal(torch.rand(2), torch.rand(2, generator=torch.Generator().manual_seed(3)))


def test_a_tensor_is_made_of_elements_of_others():
    """PyTorch reads them below `__torch_dispatch__`."""
    sim.install()
    with sim.executing(sim.on_cpu):
        x = torch.tensor([3, 2], device="sim")
        assert torch.tensor([x[0], x[1]]).tolist() == torch.tensor([x[0], x[1]], device="sim").tolist() == [3, 2]
