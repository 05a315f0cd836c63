"""What training scripts ask of any accelerator works on `sim`: generators, events, memory figures, control flow."""

import copy

import pytest
import torch
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
