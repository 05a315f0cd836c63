"""What training scripts ask of any accelerator works on `sim`: generators, events, memory figures, control flow."""

import copy

import pytest
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

from capture import sim


@pytest.fixture(autouse=True)
def device():
    sim.install()
    with sim.executing(sim.on_cpu):
        yield


def test_a_generator_of_the_device_gives_the_numbers_of_a_host_generator():
    generator = torch.Generator(device="sim").manual_seed(3)
    values = torch.randn(4, device="sim", generator=generator)
    assert generator.device == torch.device("sim:0") and values.device.type == "sim"
    assert torch.equal(values.cpu(), torch.randn(4, generator=torch.Generator().manual_seed(3)))
    assert torch.empty(3, device="sim").normal_(generator=generator).shape == (3,)
    plain = torch.Generator("cpu")
    assert type(plain) is torch._C.Generator and isinstance(plain, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator) and isinstance(generator, torch.Generator)


def test_functions_of_any_accelerator():
    assert torch.accelerator.current_accelerator().type == "sim"
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.memory_allocated() == torch.accelerator.max_memory_allocated() == 0
    torch.accelerator.set_stream(torch.sim.current_stream())
    assert torch.sim.is_bf16_supported() and torch.sim.get_device_name() == "sim"
    with torch.sim.stream(torch.sim.Stream()):
        begin, end = (torch.sim.Event(enable_timing=True) for _ in range(2))
        begin.record()
        end.record()
        assert begin.elapsed_time(end) >= 0 and end.query()
    with pytest.raises(RuntimeError, match="enable_timing=True, and recorded"):
        begin.elapsed_time(torch.sim.Event())


@pytest.mark.parametrize(
    "use",
    [
        lambda device: torch.ones(2, device=device),
        lambda device: torch.ones(2).to(device),
        lambda device: torch.ones(2, device="sim").to(device),
        lambda device: torch.tensor([1.0], device=device),
        lambda device: torch.nn.Linear(2, 2, device=device),
        lambda device: torch.Generator(device),
        lambda device: torch.sim.set_device(device),
        lambda device: torch.sim.set_device(device.index),
        lambda device: torch.sim.synchronize(device),
    ],
)
def test_the_only_device_has_index_0(use):
    use(torch.device("sim:0"))
    with pytest.raises(RuntimeError, match="^sim:1: invalid device ordinal; the only device is sim:0$"):
        use(torch.device("sim:1"))


@pytest.mark.parametrize("device", [None, -1])
def test_no_device_is_the_current_one(device):
    torch.sim.synchronize(device)
    torch.sim.set_device(device)
    with torch.sim.device(device):
        assert torch.sim.current_device() == 0


def test_tensors_have_addresses():
    """Parameters that share memory are recognised by them, and those that do not are told apart."""
    x, y = torch.ones(3, device="sim"), torch.ones(3, device="sim")
    assert x.data_ptr() != y.data_ptr() and x[1:].data_ptr() == x.data_ptr() + 4
    assert x.untyped_storage().data_ptr() == x[1:].untyped_storage().data_ptr() != y.untyped_storage().data_ptr()


def test_copies_of_a_module_keep_shared_parameters_and_have_their_own_memory():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).to("sim")
    model[1].weight = model[0].weight
    copied = copy.deepcopy(model)
    assert copied[0].weight is copied[1].weight and copied[0].weight.device.type == "sim"
    with torch.no_grad():
        copied[0].weight.zero_()
    assert model[0].weight.abs().sum().item() > 0


def test_control_flow_with_gradients():
    x = torch.full((3,), 2.0, device="sim", requires_grad=True)
    for condition, slope in ((x.sum() > 0, 4.0), (x.sum() < 0, 3.0)):
        result = torch.cond(condition, lambda v: v * v, lambda v: 3 * v, (x,))
        (gradient,) = torch.autograd.grad(result.sum(), x)
        assert result.device.type == "sim" and gradient.cpu().tolist() == [slope] * 3
    start = (torch.zeros((), device="sim", dtype=torch.int64), torch.ones(2, device="sim"))
    count, value = while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), start)
    assert (count.item(), value.cpu().tolist()) == (3, [8.0, 8.0])
    on_host = torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(2),))
    assert on_host.tolist() == [0.0, 0.0]


class Marked(torch.Tensor):
    """A user's subclass."""


def test_a_subclass_of_a_user_wraps_tensors_and_results():
    x = torch.arange(3.0, device="sim", requires_grad=True)
    marked = x.as_subclass(Marked)
    result = (marked * 2).sum()
    assert isinstance(marked, Marked) and isinstance(result, Marked) and result.device.type == "sim"
    result.backward()
    assert x.grad.tolist() == [2, 2, 2] and type(result.as_subclass(torch.Tensor)) is type(x)


@pytest.mark.parametrize("made", ["moved", "there"])
def test_lazy_modules_take_their_sizes_from_the_first_input(made):
    make = {"device": "sim"} if made == "there" else {}
    module = nn.Sequential(
        nn.LazyConv2d(2, 3, **make), nn.LazyBatchNorm2d(**make), nn.Flatten(), nn.LazyLinear(5, **make)
    )
    module = module.to("sim") if made == "moved" else module
    assert module[3].weight.device.type == "sim" and not module[1].running_mean.requires_grad
    module(torch.ones(2, 1, 4, 4, device="sim")).sum().backward()
    assert [tuple(p.shape) for p in module.parameters()] == [(2, 1, 3, 3), (2,), (2,), (2,), (5, 8), (5,)]
    assert all(isinstance(p, nn.Parameter) and p.grad.device.type == "sim" for p in module.parameters())
    assert module[1].running_mean.tolist() != [0, 0] and "1.running_mean" in module.state_dict()
    moved = nn.LazyLinear(2).to(torch.float64)  # other devices and dtypes are as before
    assert moved.weight.dtype is torch.float64 and moved(torch.ones(1, 3, dtype=torch.float64)).shape == (1, 2)


def doubled_rows(x):
    return torch._higher_order_ops.map(lambda row: row * row, x)


def running_products(x):
    carried, rows = torch._higher_order_ops.scan(lambda c, row: (c * row, c + row), x[0], x)
    return torch.cat([carried[None], rows])


def attended(x):
    q = x.view(1, 1, 4, 2)
    return torch.nn.attention.flex_attention.flex_attention(q, q * 2, q, score_mod=lambda s, b, h, i, j: s + i - j)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("function", [doubled_rows, running_products, attended])
def test_higher_order_operators_have_the_results_and_gradients_of_ordinary_calls(function):
    values = torch.linspace(0.5, 2, 8).view(4, 2)
    ordinary = {
        doubled_rows: lambda x: x * x,
        running_products: lambda x: torch.cat(
            [x[:1] * x.prod(0, keepdim=True), torch.stack([x[0] * x[:i].prod(0) + x[i] for i in range(4)])]
        ),
        attended: lambda x: torch.nn.functional.scaled_dot_product_attention(
            x.view(1, 1, 4, 2),
            x.view(1, 1, 4, 2) * 2,
            x.view(1, 1, 4, 2),
            torch.arange(4.0, device=x.device)[:, None] - torch.arange(4.0, device=x.device),
        ),
    }[function]
    on_sim, on_host = (values.to(device).requires_grad_() for device in ("sim", "cpu"))
    result, expected = function(on_sim), ordinary(on_host)
    assert result.device.type == "sim"
    torch.testing.assert_close(result.detach().cpu(), expected.detach())
    (result * result).sum().backward()
    (expected * expected).sum().backward()
    torch.testing.assert_close(on_sim.grad.cpu(), on_host.grad)


def test_jagged_tensors_compute_on_their_parts():
    parts = [torch.ones(2, 3), torch.full((4, 3), 2.0)]
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged, device="sim", requires_grad=True)
    layer = nn.Linear(3, 1).to("sim")
    result = layer(jagged)
    assert result.device.type == result.values().device.type == "sim" and result.values().shape == (6, 1)
    result.values().sum().backward()
    assert layer.weight.grad.tolist() == [[10, 10, 10]] and jagged.grad.values().shape == (6, 3)
