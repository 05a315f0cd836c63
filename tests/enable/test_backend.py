"""torch.compile with the library's kernels, and graphs as lists of launches, with launchers that really run."""

import ctypes
import gc
import re

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from triton.compiler import CompiledKernel

from capture.device import compiles
from enable import backend
from enable.serve import shortcuts, watching
from enable.serve.entries import Entry
from enable.serve.graphs import Graph, described
from enable.serve.server import Server
from verify.contract.derive import Plan

UNVERIFIED = {"unverified": True}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()
    backend.graphs.clear()
    yield
    torch._dynamo.reset()


def trained(model, x, steps=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def model_and_input(device="cpu"):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)]
    return torch.nn.Sequential(*layers).to(device), torch.randn(4, 8, device=device)


def test_a_model_trains_as_without():
    expected = trained(*model_and_input())
    model, x = model_and_input()
    assert trained(torch.compile(model, backend="enablekit", options=UNVERIFIED), x) == pytest.approx(expected, 1e-5)
    assert len(backend.graphs) == 2 and not any(graph.unserved for graph in backend.graphs)


def test_graphs_of_a_function_that_is_gone_are_gone():
    model, x = model_and_input()
    compiled = torch.compile(model, backend="enablekit", options=UNVERIFIED)
    compiled(x)
    assert len(backend.graphs) == 1
    del compiled, model
    torch._dynamo.reset()
    gc.collect()
    assert len(backend.graphs) == 0 and backend.graphs.made == 1


def test_what_is_not_served_goes_to_pytorch():
    @torch.compile(backend="enablekit", options=UNVERIFIED)
    def function(x):
        return x.exp().real * 2

    x = torch.randn(4, 6, dtype=torch.complex128)
    for _ in range(3):
        torch.testing.assert_close(function(x), x.exp().real * 2)
    (graph,) = backend.graphs
    assert graph.unserved and "by PyTorch: " in next(described(backend.graphs))


def test_sizes_that_change_are_run_call_by_call():
    function = torch.compile(lambda x: (x * 2).relu(), backend="enablekit", options=UNVERIFIED, dynamic=True)
    for n in (3, 5, 7):
        x = torch.randn(n, n)
        torch.testing.assert_close(function(x), (x * 2).relu())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"unverifed": True},
            "unknown option 'unverifed' of backend enablekit, did you mean unverified? choose from unverified, library",
        ),
        ({"unverified": "maybe"}, "options of backend enablekit: unverified 'maybe' is not True or False"),
        ({"library": 3}, "options of backend enablekit: library 3 is not an instance of Library or a text or a path"),
        ({"unverified": True, "native": True}, "native on cpu: kernels are launched without Python on cuda alone"),
    ],
)
def test_bad_options_are_told_in_a_line(options, said):
    model, x = model_and_input()
    with pytest.raises(Exception, match=re.escape(f"UserError: {said}")):
        torch.compile(model, backend="enablekit", options=options)(x)


def test_without_verdicts_no_kernel_serves(tmp_path):
    model, x = model_and_input()
    with pytest.raises(Exception, match="no kernel is verified in"):
        torch.compile(model, backend="enablekit", options={"workspace": tmp_path})(x)


CALLS = []


class Chain:
    calls = ()


def scaling(pointer, out, n, factor):
    """A launcher of a kernel that multiplies, on host memory."""
    floats = (ctypes.c_float * n).from_address(pointer)
    (ctypes.c_float * n).from_address(out)[:] = [factor * v for v in floats]


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Of a kernel for mul.Scalar of dense tensors, as on a device."""
    CALLS.clear()
    compiled = object.__new__(CompiledKernel)
    compiled.module = None
    compiled._run = lambda x, y, z, stream, handle, metadata, launched, enter, leave, *arguments: scaling(
        *[a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
    )

    def multiplied(x, factor):
        CALLS.append(factor)
        out = torch.empty_like(x)
        compiled.run(1, 1, 1, 0, None, None, None, Chain, Chain, x, out, x.numel(), factor)
        return out

    monkeypatch.setattr(watching, "_specialises_by_alignment", lambda: True)
    monkeypatch.setattr(shortcuts, "_streams", lambda: lambda index: 42)
    (tmp_path / "mul.py").write_text("def wrapper(self, other):\n    return multiplied(self, other)\n")
    monkeypatch.setattr("builtins.multiplied", multiplied, raising=False)
    floats = frozenset({"float32"})
    name = "aten::mul.Scalar"
    entry = Entry(Plan(name, name), tmp_path / "mul.py", False, None, "mul.py", floats, floats)
    made = Server({name: entry}.get, "cpu")
    made._compiled = True
    return made


def mul(x, factor):
    return torch.ops.aten.mul.Scalar(x, factor)


def graph_of(function, server, *inputs):
    return Graph(make_fx(function)(*inputs), server)


def runs_as(function, server, *inputs, times=4):
    """The graph, after this many runs that gave what the function gives."""
    graph = graph_of(function, server, *inputs)
    for _ in range(times):
        torch.testing.assert_close(graph.run([x.clone() for x in inputs]), function(*inputs))
    return graph


def test_the_third_run_takes_no_wrapper(server):
    def function(x):
        y = mul(mul(x, 2.0).view(2, 2).t(), 3.0)
        return [y.t().view(4)[1:3], y]

    x = torch.arange(4.0)
    graph = runs_as(function, server, x)
    assert CALLS == [2.0, 3.0] * 2
    assert len(graph.stretches) == 1 and list(described([graph])) == ["graph 0: 2 launches in 1 of 1 stretches"]
    part, whole = graph.run([x])
    assert part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    assert graph.run([x])[1].data_ptr() != whole.data_ptr()


def test_inputs_that_are_parts_of_one_tensor(server):
    def function(x, y):
        return [mul(x, 2.0), mul(y, 3.0)]

    graph = graph_of(function, server, torch.ones(4), torch.ones(4))
    whole = torch.arange(12.0)
    for _ in range(3):
        torch.testing.assert_close(graph.run([whole[:4], whole[4:8]]), function(whole[:4], whole[4:8]))
    apart = [whole[:4], whole[8:]]
    assert graph.stretches[0].shortcut.run(apart, None) is shortcuts.MISS
    torch.testing.assert_close(graph.run(list(apart)), function(*apart))
    beside = [whole[4:8], whole[8:]]
    torch.testing.assert_close(graph.stretches[0].shortcut.run(beside, None), function(*beside))


def test_what_is_not_served_cuts_a_graph(server):
    def function(x):
        return [mul(torch.special.airy_ai(mul(x, 2.0)), 3.0)]

    graph = runs_as(function, server, torch.ones(4))
    assert [len(stretch.nodes) for stretch in graph.stretches] == [1, 1]
    assert graph.unserved == {"aten::special_airy_ai": 1}
    assert CALLS == [2.0, 3.0] * 2


def test_another_alignment_takes_the_wrapper(server):
    graph = runs_as(lambda x: [mul(x, 2.0)], server, torch.ones(4))
    before = len(CALLS)
    other = torch.ones(5)[1:]
    assert graph.stretches[0].shortcut.run([other], None) is shortcuts.MISS
    assert graph.run([other])[0].tolist() == [2] * 4
    assert len(CALLS) == before + 1


def test_inputs_that_are_no_tensors_and_outputs_that_are_inputs(server):
    graph = runs_as(lambda x: [x, mul(x, 2.0)], server, torch.ones(4))
    x = torch.ones(4)
    assert graph.run([x])[0] is x


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.skipif(not compiles(), reason="needs kernels compiled: pytest -m gpu, without TRITON_INTERPRET")
@pytest.mark.parametrize("more", [{}, {"native": False}, {"cuda_graphs": True}], ids=["native", "python", "graphs"])
def test_a_model_trains_on_a_gpu_as_without(more):
    expected = trained(*model_and_input("cuda"), steps=6)
    model, x = model_and_input("cuda")
    compiled = torch.compile(model, backend=backend.enablekit, options=UNVERIFIED | more)
    assert trained(compiled, x, steps=6) == pytest.approx(expected, 1e-5)
    assert all(stretch.shortcut for graph in backend.graphs for stretch in graph.stretches) or "cuda_graphs" in more


def test_what_draws_cuts_a_graph_and_is_served():
    @torch.compile(backend="enablekit", options=UNVERIFIED)
    def function(x):
        return torch.nn.functional.dropout(x.exp(), 0.5, True) * 2

    x = torch.randn(64)
    for _ in range(3):
        kept = function(x) / (x.exp() * 4)
        assert torch.allclose(kept, kept.round(), atol=1e-5) and 0 < kept.sum() < 64
    assert not any(graph.unserved for graph in backend.graphs)
    assert [len(graph.stretches) for graph in backend.graphs] == [2]


def test_graphs_of_the_same_options_share_their_kernels():
    options = {"backend": "enablekit", "options": UNVERIFIED}
    functions = [torch.compile(made, **options) for made in (lambda x: (x * 2).relu(), lambda x: (x * 3).relu())]
    for function in functions:
        function(torch.randn(3))
    one, other = backend.graphs
    assert one._server is other._server


FUSED = {**UNVERIFIED, "fused": True}


def test_subgraphs_are_fused_forward_and_backward():
    backend.graphs.clear()
    expected = trained(*model_and_input())
    model, x = model_and_input()
    assert trained(torch.compile(model, backend="enablekit", options=FUSED), x) == pytest.approx(expected, 1e-5)
    found = {(s.phase, s.kind) for s in backend.substitutions() if not s.reason}
    assert found >= {("forward", "product"), ("backward", "reduction")}
    assert not any(graph.unserved for graph in backend.graphs)


def test_what_cannot_be_fused_is_told_and_what_is_left_of_it_is_fused():
    backend.graphs.clear()

    def function(x, y):
        return ((torch.bmm(x, y) + y) * 2).relu()

    x, y = torch.randn(2, 4, 4), torch.randn(2, 4, 4)
    torch.testing.assert_close(torch.compile(function, backend="enablekit", options=FUSED)(x, y), function(x, y))
    whole, rest = backend.substitutions()
    assert whole.kind == "product" and "launches one_warp_kernel itself" in whole.reason
    assert rest.kind == "pointwise" and not rest.reason


def test_sizes_that_change_are_fused_where_they_are_never_1():
    """From the second size on one graph is for all, by the same kernels as the first; a size of 1 has its own."""
    backend.graphs.clear()

    def function(x, w, y):
        product = (x.view(x.shape[0] * x.shape[1], 8) @ w).view(x.shape[0], x.shape[1], 8)
        return torch.nn.functional.layer_norm((product + y).relu() * 2, (8,)), (x[::2] * 2).relu()

    compiled = torch.compile(function, backend="enablekit", options=FUSED)
    w = torch.randn(8, 8)
    for n in (4, 7, 5, 1):
        x, y = torch.randn(n, 6, 8, requires_grad=True), torch.randn(n, 6, 8)
        given = [x, w, y]
        found, expected = compiled(*given), function(*given)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        (of_found,), (of_expected,) = (torch.autograd.grad(sum(t.sum() for t in r), x) for r in (found, expected))
        torch.testing.assert_close(of_found, of_expected, rtol=1e-4, atol=1e-4)
    fused: list[set[str]] = [set() for _ in backend.graphs]
    for found in backend.substitutions():
        assert not found.reason
        fused[found.graph].add(found.overload)
    (first, of_first, changing, of_changing, one, of_one) = fused
    assert {n for n in first if "mm" in n} == changing  # without what is made of x[::2], which may be one row
    assert {n for n in of_first if "mm" in n or "norm" in n} == of_changing and len(of_changing) == 2
    assert one and of_one and not (one | of_one) & (changing | of_changing)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_sizes_that_nobody_knows_before_are_not_fused():
    backend.graphs.clear()
    function = lambda x: ((x * 2).relu(), (x.nonzero() * 2 + 1).abs())  # noqa: E731
    compiled = torch.compile(function, backend="enablekit", options=FUSED)
    for n in (4, 6):
        x = torch.randn(n, 3)
        assert all(map(torch.equal, compiled(x), function(x)))
    assert {s.overload.rpartition("_")[0] for s in backend.substitutions()} == {"fused::mul_relu"}


def test_numbers_that_change_are_no_part_of_a_subgraph():
    backend.graphs.clear()
    function = lambda x: (x * x.shape[0]).relu() * 2  # noqa: E731
    compiled = torch.compile(function, backend="enablekit", options=FUSED, dynamic=True)
    for n in (3, 5):
        torch.testing.assert_close(compiled(torch.ones(n, 3)), function(torch.ones(n, 3)))
    assert {s.overload.rpartition("_")[0] for s in backend.substitutions()} == {"fused::relu_mul"}
