"""Device `orion`, which is written in C++ out of tree, without the toolkit: it has only the basics of a first driver.

PrivateUse1 has one name per process, and other tests call it `sim`. So each topic runs in a process of its own.
"""

import copy
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.timeout(900)  # the first import of orionchip builds it, and other processes wait
CHIP = Path(__file__).parents[1] / "support" / "chip"


@pytest.mark.parametrize("name", ["memory", "views", "copies", "control", "generators", "pinned", "files"])
def test_the_basics_are_those_of_any_accelerator(name):
    passes(name)


@pytest.mark.parametrize("name", ["missing", "autocast"])
def test_every_other_operator_is_refused_by_name(name):
    passes(name)


def test_an_access_outside_a_buffer_ends_the_process():
    passes("guards")


def test_interpreted_triton_kernels_read_and_write_its_tensors():
    passes("triton_kernels")


def passes(name):
    environment = {**os.environ, "PYTHONPATH": str(CHIP), "TRITON_INTERPRET": "1", "ORION_MEMORY": str(1 << 30)}
    command = [sys.executable, "-W", "error", "-W", "ignore:TRITON_DEFAULT_FP_FUSION", __file__, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=880, check=False)
    assert (done.returncode, done.stdout) == (0, f"{name} passed\n"), done.stdout + done.stderr


def raises(error, match, work):
    with pytest.raises(error, match=match) as caught:
        work()
    assert "\n" not in str(caught.value)


def memory():
    assert torch.orion.memory_allocated() == 0
    x = torch.empty(4, 64, device="orion")
    y = torch.empty(10, dtype=torch.uint8, device="orion:1")
    assert (str(x.device), str(y.device)) == ("orion:0", "orion:1") and x.is_orion and not x.is_cpu
    assert x.data_ptr() % 64 == y.data_ptr() % 64 == 0 and (x.data_ptr() + x.nbytes) % 4096 == 0
    assert x.cpu().isnan().all()  # fresh memory has no usable values
    assert [torch.orion.memory_allocated(i) for i in (0, 1)] == [1024, 64]
    del x
    assert torch.orion.memory_allocated() == 0 and torch.orion.max_memory_allocated() == 1024
    torch.orion.reset_peak_memory_stats()
    assert torch.orion.max_memory_allocated() == 0 and torch.orion.memory_allocated("orion:1") == 64

    y = torch.arange(4.0).to("orion:1")
    before = y.data_ptr()
    y.resize_(100)
    assert y.data_ptr() != before and y.untyped_storage().device == y.device == torch.device("orion:1")
    assert y[:4].tolist() == [0, 1, 2, 3]
    y.untyped_storage().resize_(0)
    assert y.untyped_storage().nbytes() == 0 and torch.orion.memory_allocated(1) == 0
    y.untyped_storage().resize_(400)
    assert y.untyped_storage().device == y.device and torch.orion.memory_allocated(1) == 448
    assert torch.empty(0, 3, device="orion").data_ptr() == 0

    raises(RuntimeError, "orion has 2 devices, and none is orion:7", lambda: torch.empty(1, device="orion:7"))
    raises(torch.OutOfMemoryError, "orion:0 has no memory for 2147483648 bytes", lambda: torch.empty(1 << 29).orion())
    assert torch.orion.mem_get_info() == (1 << 30, 1 << 30)


def views():
    host = torch.arange(24.0).view(2, 3, 4)
    x = host.to("orion:1")
    for view in (
        lambda t: t.transpose(0, 2),
        lambda t: t[1, ::2, 1:],
        lambda t: t.permute(2, 0, 1).reshape(-1),
        lambda t: t.unbind(1)[2],
        lambda t: t.split(2, dim=2)[1],
        lambda t: t.diagonal(dim1=1, dim2=2),
        lambda t: t[:, :1].expand(2, 5, 4),
        lambda t: t.view(torch.int32),
        lambda t: t.as_strided((2, 2), (5, 3), 4),
        lambda t: t[None].flatten(1).squeeze(),
        lambda t: t.detach().view_as(t),
        lambda t: t.unfold(0, 2, 1),
    ):
        assert torch.equal(view(x).cpu(), view(host)) and view(x).stride() == view(host).stride()
        assert view(x).device == x.device
    x[1, 0].copy_(torch.full((4,), -1.0))
    assert x.cpu()[1, 0].tolist() == [-1] * 4 and x.cpu()[0].equal(host[0])

    assert torch.empty(0, device="orion:1").set_(x).data_ptr() == x.data_ptr()
    part = torch.empty(0, device="orion:1").set_(x.untyped_storage(), 2, (3,), (4,))
    assert part.tolist() == host.view(-1)[2:12:4].tolist()
    parameter = torch.nn.Parameter(torch.empty(3, device="orion:1"))
    parameter.data = part
    assert parameter.data_ptr() == part.data_ptr()
    assert {str(p.device) for p in torch.nn.Linear(2, 2).orion().parameters()} == {"orion:0"}


def copies():
    host = torch.arange(12.0).view(3, 4)
    x = host.orion()
    assert torch.equal(x.cpu(), host) and torch.equal(x.to("orion:1").cpu(), host)
    assert torch.equal(x.t().to("orion:1").cpu(), host.t()) and str(x.to("orion:1").device) == "orion:1"
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.bool, torch.complex64):
        assert torch.equal(x.to(dtype).cpu(), host.to(dtype)) and torch.equal(x.to("cpu", dtype), host.to(dtype))
        assert torch.equal(host.to("orion:1", dtype).cpu(), host.to(dtype))
    assert torch.equal(x.clone(memory_format=torch.contiguous_format).t().contiguous().cpu(), host.t())
    assert torch.equal(copy.deepcopy(x).cpu(), host)
    for on in ("cpu", "orion:0", "orion:1"):  # a copy broadcasts, into a target with strides
        target = torch.empty(4, 6, device=on)[:, ::2].t()
        target.copy_(x[0])
        assert torch.equal(target.cpu(), host[0].expand(3, 4))
    z = torch.tensor([1 + 2j, 3j])
    assert torch.equal(z.orion().conj().cpu(), z.conj()) and torch.equal(z.conj().orion().cpu(), z.conj())
    target = torch.empty_like(z, device="orion")
    target.conj().copy_(z)
    assert torch.equal(target.cpu(), z.conj().resolve_conj())
    raises(RuntimeError, "refer to a single memory location", lambda: x[1:].copy_(x[:-1]))

    assert x[1, 2].item() == 6.0 and x.tolist() == host.tolist()
    assert torch.tensor([True], device="orion").item() is True and bool(x[0, 1])
    assert torch.tensor([1, 2], device="orion").tolist() == [1, 2]
    assert repr(x.long()[0]) == "tensor([0, 1, 2, 3], device='orion:0')"


def control():
    acc = torch.accelerator
    assert acc.is_available() and acc.current_accelerator() == torch.device("orion") and acc.device_count() == 2
    assert acc.current_device_index() == torch.orion.current_device() == 0
    acc.set_device_index(1)
    assert torch.orion.current_device() == 1 and torch.empty(1, device="orion").device.index == 1
    other_thread = []
    thread = threading.Thread(target=lambda: other_thread.append(torch.orion.current_device()))
    thread.start(), thread.join()
    assert other_thread == [0]
    with torch.orion.device("orion:0"), acc.device_index(1), torch.orion.device_of(torch.empty(1, device="orion:0")):
        assert torch.orion.current_device() == 0
    torch.orion.set_device(0)
    assert acc.synchronize() is None and acc.empty_cache() is None and acc.empty_host_cache() is None
    x = torch.empty(100, device="orion")
    assert acc.memory_allocated() == acc.max_memory_allocated() == torch.orion.memory_allocated() == 448
    assert (
        acc.memory_reserved() == os.sysconf("SC_PAGESIZE") and acc.memory_stats()["requested_bytes.all.current"] == 400
    )
    assert torch.bfloat16 in acc.get_device_capability()["supported_dtypes"]
    assert torch.get_device_module() is torch.get_device_module("orion") is torch.orion

    new, default = torch.orion.Stream(), torch.orion.default_stream()
    assert acc.current_stream() == torch.orion.current_stream() == default != new and isinstance(new, torch.Stream)
    with torch.orion.stream(new):
        assert torch.orion.current_stream() == new
    with torch.Stream(device="orion:1") as second:
        assert acc.current_device_index() == 1 and acc.current_stream() == second
    assert acc.current_stream() == default and new.query() and new.synchronize() is None
    x.record_stream(new)
    raises(RuntimeError, "a buffer on orion:0 cannot wait for stream", lambda: x.record_stream(second))

    first, untimed = torch.orion.Event(enable_timing=True), new.record_event()
    last = torch.Event("orion", enable_timing=True)
    raises(ValueError, "must be recorded", lambda: first.elapsed_time(last))
    first.record(), new.wait_event(first), last.record(new), new.wait_stream(default), last.synchronize()
    assert first.query() and 0 < first.elapsed_time(last) < 1000
    raises(ValueError, "enable_timing=True", lambda: first.elapsed_time(untimed))


def generators():
    generator = torch.Generator(device="orion:1")
    assert generator.device == torch.device("orion:1") and torch.Generator("orion").device.index == 0
    generator.manual_seed(5)
    generator.set_offset(12)
    state = generator.get_state()
    assert (state.device.type, state.view(torch.int64).tolist()) == ("cpu", [5, 12])
    generator.seed()
    assert (generator.initial_seed(), generator.get_offset()) != (5, 12)
    assert generator.set_state(state).initial_seed() == 5 and generator.get_offset() == 12
    assert generator.clone_state().get_offset() == 12
    raises(RuntimeError, "16 bytes, not 8", lambda: generator.set_state(state[:8]))
    raises(RuntimeError, "multiple of 4, not 3", lambda: generator.set_offset(3))

    torch.manual_seed(9)
    assert [g.initial_seed() for g in torch.orion.default_generators] == [9, 9]
    torch.orion.manual_seed(3)
    assert [g.initial_seed() for g in torch.orion.default_generators] == [3, 9]
    with torch.random.fork_rng(devices=range(2), device_type="orion"):
        torch.orion.manual_seed_all(1)
    assert [g.initial_seed() for g in torch.orion.default_generators] == [3, 9]
    torch.orion.set_rng_state(torch.orion.get_rng_state("orion:1"))
    assert torch.orion.initial_seed() == 9


def pinned():
    host = torch.arange(8.0)
    assert host.pin_memory().is_pinned() and torch.empty(3, pin_memory=True)[1:].is_pinned()
    assert not host.is_pinned() and not host.orion().is_pinned()
    assert torch.equal(host.pin_memory().to("orion", non_blocking=True).to("cpu", non_blocking=True), host)
    for workers in (0, 1):
        loader = DataLoader(TensorDataset(host), batch_size=4, pin_memory=True, num_workers=workers)
        batches = [batch for (batch,) in loader]
        assert all(batch.is_pinned() for batch in batches) and torch.equal(torch.cat(batches), host)


def files():
    module = torch.nn.Linear(3, 2).to("orion:1")
    x = torch.arange(6.0).view(2, 3).orion()
    file = io.BytesIO()
    torch.save({"x": x, "t": x.t(), "state": module.state_dict()}, file)

    def loaded(location=None):
        file.seek(0)
        return torch.load(file, map_location=location)

    kept = loaded()
    assert kept["x"].device == x.device and kept["state"]["weight"].device == torch.device("orion:1")
    assert kept["t"].stride() == (1, 3) and kept["t"].data_ptr() == kept["x"].data_ptr()
    for location, expected in (("cpu", "cpu"), ("orion:1", "orion:1"), ({"orion:0": "orion:1"}, "orion:1")):
        moved = loaded(location)
        assert str(moved["x"].device) == str(moved["state"]["bias"].device) == expected
        assert torch.equal(moved["t"].cpu(), x.cpu().t())
    fresh = torch.nn.Linear(3, 2).orion()
    fresh.load_state_dict(kept["state"])
    assert torch.equal(fresh.weight.cpu(), module.weight.cpu()) and fresh.weight.device.index == 0


def missing():
    x = torch.ones(2, 2).orion()
    for name, work in {
        "add.out": lambda: x + x,
        "exp.out": lambda: x.exp(),
        "mm.out": lambda: x @ x,
        "zero_": lambda: torch.zeros(2, device="orion"),
        "fill_.Scalar": lambda: torch.ones(2, device="orion"),
        "arange.start_out": lambda: torch.arange(2, device="orion"),
        "normal_": lambda: torch.randn(2, device="orion"),
        "equal": lambda: torch.equal(x, x),
        "abs.out": lambda: repr(x),  # PyTorch computes the format of floating-point numbers on the device
    }.items():
        raises(NotImplementedError, f"^aten::{name}: orion has no kernel for it$", work)

    library = torch.library.Library("aten", "IMPL", "PrivateUse1")
    library.impl("add.out", lambda a, b, *, alpha=1, out: out.copy_(torch.add(a.cpu(), b.cpu(), alpha=alpha)))
    assert (x + x).tolist() == x.add_(x).tolist() == [[2, 2], [2, 2]]  # kernels of a library take precedence
    del library

    leaf = torch.ones(4, requires_grad=True)
    on_chip = leaf.to("orion").view(2, 2).t()
    on_chip.backward(torch.ones(2, 2).orion())  # it needs views and copies only
    assert torch.equal(leaf.grad, torch.ones(4))
    part = leaf.to("orion")[1:]  # its backward begins with zeros
    gradient = torch.ones(3).orion()
    raises(NotImplementedError, "^aten::zero_: orion has no kernel for it$", lambda: part.backward(gradient))


class Seen(TorchDispatchMode):
    """Operators in order, with the dtypes of their tensors."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.calls[op.name()] = {a.dtype for a in args if isinstance(a, torch.Tensor)}
        return op(*args, **(kwargs or {}))


def autocast():
    x, half = torch.ones(1, 4, 4).orion(), torch.ones(1, 4, 4).half().orion()
    assert torch.orion.is_bf16_supported() and not torch.is_autocast_enabled("orion")
    classes = torch.zeros(4, dtype=torch.int64).orion()
    bf16, f32 = {torch.bfloat16}, {torch.float32}
    for name, dtypes, work in (
        ("aten::mm", bf16, lambda: x[0] @ x[0]),
        ("aten::addmm", bf16, lambda: F.linear(x[0], x[0], x[0, 0])),
        ("aten::bmm", bf16, lambda: torch.bmm(x, half)),
        ("aten::native_layer_norm", f32, lambda: F.layer_norm(half, (4,))),
        ("aten::_softmax", f32, lambda: F.softmax(half, -1)),
        ("aten::_log_softmax", f32, lambda: F.log_softmax(half, -1)),
        ("aten::nll_loss_forward", {torch.float32, torch.int64}, lambda: F.nll_loss(half[0], classes)),
        ("aten::exp", f32, lambda: half.exp()),
        ("aten::add.Tensor", {torch.float16, torch.float32}, lambda: x + half),
    ):
        with torch.autocast("orion", dtype=torch.bfloat16), Seen() as seen:
            assert torch.is_autocast_enabled("orion") and torch.get_autocast_dtype("orion") is torch.bfloat16
            raises(NotImplementedError, "orion has no kernel", work)
        assert seen.calls.get(name) == dtypes, (name, seen.calls)
    with torch.autocast("orion"):
        raises(RuntimeError, "binary_cross_entropy is unsafe", lambda: F.binary_cross_entropy(x, x))


def guards():
    import ctypes

    def ended_by(work):
        """Return the signal that ends a forked process which does this."""
        if not (child := os.fork()):
            os.close(2)
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            work()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    full, odd = torch.empty(64, dtype=torch.uint8).orion(), torch.empty(10, dtype=torch.uint8).orion()
    page = os.sysconf("SC_PAGESIZE")

    def write(address):
        return lambda: ctypes.memset(address, 1, 1)

    def write_and_free():
        nonlocal odd
        write(odd.data_ptr() + 10)()
        del odd

    def read_freed():
        address = torch.ones(64).orion().data_ptr()
        ctypes.string_at(address, 1)

    assert ended_by(write(full.data_ptr())) == ended_by(write(full.data_ptr() + 63)) == 0
    assert ended_by(write(full.data_ptr() + 64)) == ended_by(write(odd.data_ptr() + 64)) == signal.SIGSEGV
    assert ended_by(write(full.data_ptr() + 64 - page - 1)) == signal.SIGSEGV
    assert ended_by(read_freed) == signal.SIGSEGV
    assert ended_by(write_and_free) == signal.SIGABRT  # those bytes are on the buffer's page; a free checks them


def triton_kernels():
    global tl  # a kernel looks it up by name
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    def add(x_ptr, y_ptr, sum_ptr, n, x_step, y_step, sum_step, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        total = tl.load(x_ptr + i * x_step, mask=i < n) + tl.load(y_ptr + i * y_step, mask=i < n)
        tl.store(sum_ptr + i * sum_step, total, mask=i < n)

    def double(x, out, BLOCK: tl.constexpr):
        tile = x.load([0, 0])
        out.store([0, 0], tile + tile)

    add, double = triton.jit(add), triton.jit(double)

    def launch(x, y, out):
        steps = (x.stride(0), y.stride(0), out.stride(0))
        add[(triton.cdiv(out.numel(), 16),)](x, y, out, out.numel(), *steps, BLOCK=16)

    for device in ("orion:0", "orion:1"):
        for dtype in (torch.float32, torch.float16, torch.float64, torch.int32):
            host = torch.arange(60, dtype=dtype)
            for x, y, out in (
                (lambda t: t[:10], lambda t: t[10:20], lambda t: t[20:30]),  # storage offsets
                (lambda t: t[1:30:3], lambda t: t[2:42:4], lambda t: t[5:60:6][:10]),  # and strides
                (lambda t: t.view(6, 10).t()[3], lambda t: t.view(6, 10).t()[4], lambda t: t.view(6, 10).t()[5]),
                (lambda t: t, lambda t: t, lambda t: t),  # in place
                (lambda t: t[:30], lambda t: t[30:], lambda t: t[30:]),  # in place, through one view among two
                (lambda t: t[:1].expand(60), lambda t: t, lambda t: t),
            ):
                chip, expected = host.to(device), host.clone()
                address = chip.data_ptr()
                launch(x(chip), y(chip), out(chip))
                out(expected).copy_(x(expected) + y(expected))
                assert torch.equal(chip.cpu(), expected) and chip.data_ptr() == address

    a, b, c = torch.ones(8).orion(), torch.ones(8).to("orion:1"), torch.empty(8, device="orion")
    launch(a, b, c)
    assert c.tolist() == [2] * 8
    launch(*[torch.empty(0, device="orion")] * 3)
    parameter = torch.nn.Parameter(torch.ones(8)).orion()
    launch(parameter, torch.ones(8), c)  # with a tensor on the host
    assert c.tolist() == [2] * 8
    tile = torch.arange(64.0).view(8, 8).orion()
    out = torch.empty_like(tile)
    double[(1,)](*(TensorDescriptor.from_tensor(t, [8, 8]) for t in (tile, out)), BLOCK=8)
    assert torch.equal(out.cpu(), 2 * tile.cpu())


if __name__ == "__main__":
    import orionchip  # noqa: F401  # it is on the path of a topic's process only

    globals()[sys.argv[1]]()
    print(sys.argv[1], "passed")  # noqa: T201
