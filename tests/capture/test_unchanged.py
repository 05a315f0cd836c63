"""Programs of many kinds run under the recorder as without it, and their traces can be opened and replayed."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_
from torch._higher_order_ops.out_dtype import out_dtype
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from capture import Recorder
from traces import Trace, verify
from traces.materialise import arguments_of, run
from traces.overloads import name_of
from traces.text import describe

PROGRAMS = {}


def program(run):
    PROGRAMS[run.__name__] = run
    return run


def randn(*shape, **options):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), **options)


def strided_nested(*widths):
    return torch.nested.nested_tensor([randn(n, 8) for n in widths or (3, 5)])


def jagged(*widths):
    return torch.nested.nested_tensor([randn(n, 8) for n in widths or (3, 5)], layout=torch.jagged)


def grads(loss, *inputs):
    return torch.autograd.grad(loss.sum(), inputs, allow_unused=True)


# Nested tensors


@program
def nested_linear():
    layer, x = torch.nn.Linear(8, 8), strided_nested()
    with torch.no_grad():
        layer.weight.copy_(randn(8, 8)), layer.bias.zero_()
    y = layer(x).to_padded_tensor(0.0)
    return y, grads(y, layer.weight)


@program
def nested_matmul():
    x = strided_nested().requires_grad_()
    y = torch.matmul(x, x.transpose(1, 2))
    return torch.nested.to_padded_tensor(y, 0.0), [t.detach() for t in grads(y.to_padded_tensor(0.0), x)[0].unbind()]


@program
def nested_chunk_and_more():
    x = strided_nested()
    parts = [t.to_padded_tensor(1.0) for t in x.chunk(2, -1)]
    return *parts, x.softmax(-1).to_padded_tensor(0.0), F.gelu(x).to_padded_tensor(0.0), x.reshape(2, -1, 2, 4).unbind()


@program
def nested_layer_norm_backward():
    x = strided_nested().requires_grad_()
    y = F.layer_norm(x, (8,)).to_padded_tensor(0.0)
    return y, grads(y, x)[0].unbind()


@program
def nested_in_inference_mode():
    with torch.inference_mode():
        x = strided_nested()
        return F.linear(x, randn(4, 8)).to_padded_tensor(0.0), torch.matmul(x, x.transpose(1, 2)).unbind()


@program
def nested_attention():
    x = strided_nested(4, 4).reshape(2, -1, 2, 4).transpose(1, 2)
    return F.scaled_dot_product_attention(x, x, x).to_padded_tensor(0.0)


@program
def nested_fast_path():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    model = torch.nn.TransformerEncoder(layer, 1)
    for p in model.parameters():
        torch.nn.init.constant_(p, 0.1)
    padded = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        return model(randn(2, 5, 8), src_key_padding_mask=padded)


@program
def jagged_attention():
    x = jagged().requires_grad_()
    heads = x.unflatten(-1, [2, 4]).transpose(1, 2)
    y = F.scaled_dot_product_attention(heads, heads, heads)
    return y.values(), grads(y.values(), x)[0].values()


@program
def jagged_layers():
    x = jagged().requires_grad_()
    y = F.layer_norm(F.linear(x, randn(8, 8)), (8,)).sum(1) + x.mean(1)
    return y, grads(y, x)[0].values(), x.size(0), x.chunk(2, -1)[0].values()


# Other layouts, dtypes and tensors without contents


@program
def compressed_layouts():
    dense = randn(4, 4).relu()
    kinds = (dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((2, 2)), dense.to_sparse_bsc((2, 2)))
    return [s.to_dense() * 2 for s in kinds], kinds[0] @ dense, (kinds[0] + kinds[0]).to_dense(), kinds[0].values()


@program
def compressed_backward():
    x = randn(4, 4).relu().to_sparse_csr().requires_grad_()
    return grads((x @ randn(4, 2)), x)[0].to_dense()


@program
def sparse_coo():
    x = randn(4, 4).relu().to_sparse().requires_grad_()
    y = torch.sparse.mm(x, randn(4, 3))
    softened = torch.sparse.softmax(x, 1).to_dense()
    doubled = torch.sparse_coo_tensor([[1, 1], [2, 2]], [1.0, 2.0], (3, 3))
    return (
        y,
        grads(y, x)[0].to_dense(),
        softened,
        doubled.coalesce().values(),
        torch.smm(x.detach(), randn(4, 4)).to_dense(),
    )


@program
def sparse_meta():
    return torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)).to("meta").shape


@program
def mkldnn():
    x = randn(2, 3, 4, 4).to_mkldnn()
    return (x + x).to_dense(), F.relu(x).to_dense(), x.reshape(2, -1).to_dense()


@program
def quantised():
    x = torch.quantize_per_tensor(randn(4, 4), 0.1, 3, torch.quint8)
    rows = torch.quantize_per_channel(randn(4, 4), torch.ones(4) * 0.1, torch.zeros(4), 0, torch.qint8)
    return x.dequantize(), F.relu(x).dequantize(), rows.dequantize(), rows.q_per_channel_scales(), x[1:].int_repr()


@program
def conjugated():
    x, y = (randn(3, 3, dtype=torch.complex64) for _ in range(2))
    return x.conj() @ y, x.conj().clone(), torch.complex(x.real, x.conj().imag), x.conj().imag * 2, x.mH.resolve_conj()


@program
def zero_tensors():
    zero = torch._efficientzerotensor((3,))
    return zero + torch.ones(3), zero * 2, torch.ones(3).mul(zero), zero.clone(), zero.sum()


@program
def forward_derivatives():
    return torch.func.jvp(lambda x: (x * 2).sum() * x.sin(), (randn(3),), (randn(3),)), torch.func.hessian(
        lambda x: (x**3).sum()
    )(randn(3))


@program
def meta():
    x = torch.ones(3, device="meta")
    return (x + 1).shape, torch.empty_like(x).shape


@program
def fake():
    with FakeTensorMode():
        return (torch.ones(3) @ torch.ones(3, 2)).shape


@program
def fake_outside_its_mode():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(3))
    return (x * 2).shape


@program
def named():
    x = torch.zeros(2, 3, names=("N", "C")) + 1
    return x.sum("C").rename(None), x.align_to("C", "N").rename(None), (x * x).names, x.log_softmax("C").rename(None)


@program
def bits_and_narrow_dtypes():
    return (
        torch.ones(4, dtype=torch.float8_e4m3fn).float(),
        torch.ones(4, dtype=torch.uint16) + 1,
        torch.arange(3).to(torch.complex32),
    )


@program
def resized_away():
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    return x.detach().shape, torch.empty(0).expand(3, 0) + 1


# Lazy modules and subclasses


@program
def lazy_modules():
    net = torch.nn.Sequential(*[torch.nn.LazyLinear(4) for _ in range(6)], torch.nn.LazyBatchNorm1d())
    y = net(torch.ones(2, 4))
    y.sum().backward()
    return [p.shape for p in net.parameters()], y.shape


class Liar(torch.Tensor):
    """Its attributes raise, or are wrong."""

    @property
    def shape(self):
        raise RuntimeError("no shape")

    @property
    def is_sparse(self):
        return True

    def stride(self):
        return (10**9,)

    @property
    def requires_grad(self):
        raise AttributeError("no gradients")


class Listening(torch.Tensor):
    heard = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.heard.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


@program
def lying_subclass():
    x = randn(3).as_subclass(Liar)
    listed = torch.stack([x, x]).as_subclass(torch.Tensor)
    return (x + 1).as_subclass(torch.Tensor), listed, x.add_(1).as_subclass(torch.Tensor), x.sin_() is x


@program
def resized_subclass():
    x = torch.ones(3).as_subclass(Liar)
    torch.add(torch.ones(5), 1, out=x.resize_(0))
    return x.as_subclass(torch.Tensor)


@program
def listening_subclass():
    Listening.heard.clear()
    x = randn(3).as_subclass(Listening).requires_grad_()
    torch.autograd.backward((x * 2).exp().sum())
    return x.grad.as_subclass(torch.Tensor), list(Listening.heard)


@program
def listening_mode():
    heard = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    x = randn(3).requires_grad_()
    with Mode():
        torch.autograd.backward([(x * 2).sin().sum()])
    return x.grad, heard


@program
def dispatching_subclass():
    x = TwoTensor(randn(3), randn(3))
    y = torch.cat([x, x.sin()]) @ torch.ones(6)
    return y.a, y.b


@program
def default_device():
    with torch.device("meta"):
        shape = torch.ones(3).shape
        return shape, torch.ones(2, device="cpu") + 1


@program
def modes_beneath_and_above():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(name_of(func))
            return func(*args, **(kwargs or {}))

    x = randn(3).requires_grad_()
    with Mode():
        y = x.sin() * 2
        g = grads(y, x)
    return y, g, [name for name in seen if not name.startswith("profiler")]


class Unhashable(torch.nn.Module):
    def __eq__(self, other):
        return True

    def forward(self, x):
        return x * 2


class Secretive(torch.nn.Module):
    def named_modules(self, *args, **kwargs):
        raise RuntimeError("none of your business")

    def forward(self, x):
        return x * 2


@program
def modules_that_refuse():
    return Secretive()(torch.ones(2)), torch.nn.ReLU()(torch.ones(2))


@program
def modules_without_a_hash():
    return Unhashable()(torch.ones(2))


# Transforms and tracing


@program
def transforms():
    x = randn(3, 4)
    return (
        torch.vmap(lambda v: v.softmax(0) @ v)(x),
        torch.vmap(torch.func.grad(lambda v: (v.sin() * v).sum()))(x),
        torch.func.vjp(torch.sin, x)[1](x),
        torch.func.jacrev(lambda v: v.cumsum(0))(x[0]),
        torch.func.functionalize(lambda v: v.clone().add_(1))(x),
        torch.vmap(lambda v: v + torch.randn(()), randomness="same")(x).shape,
    )


@program
def tracing():
    x = randn(3)
    graphs = [make_fx(lambda v: v.sin() @ v, tracing_mode=mode)(x) for mode in ("real", "fake", "symbolic")]
    return [g(x) for g in graphs], torch.jit.trace(torch.sin, x)(x), [len(g.graph.nodes) for g in graphs]


@program
def exporting():
    exported = torch.export.export(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), (randn(2, 4),))
    return exported.module()(torch.ones(2, 4)).shape


@program
def compiled():
    f = torch.compile(lambda v: (v.sin() * 2).sum(), backend="aot_eager")
    x = randn(3).requires_grad_()
    return f(x), grads(f(x), x)


# Higher-order operators


def gradient_through(call):
    x = torch.ones(3, 4, requires_grad=True)
    y = call(x)
    y = y if isinstance(y, torch.Tensor) else y[0]
    return y, grads(y, x)


WEIGHT = randn(4, 4)
HIGHER_ORDER = {
    "cond": lambda x: torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,)),
    "cond_over_a_weight": lambda x: torch.cond(x.sum() > 0, lambda t: t @ WEIGHT, lambda t: (t @ WEIGHT).cos(), (x,)),
    "map": lambda x: map_(lambda t: t * 2, x),
    "scan": lambda x: scan(lambda c, t: (c @ WEIGHT + t, (c * 2 + t).clone()), torch.zeros(4), x, dim=0)[1],
    "nested_cond": lambda x: torch.cond(
        x.sum() > 0, lambda t: torch.cond(t.sum() > 99, torch.sin, torch.cos, (t,)), lambda t: t.sin(), (x,)
    ),
}
for name, call in HIGHER_ORDER.items():
    PROGRAMS[name] = lambda call=call: gradient_through(call)


@program
def loops_and_scans():
    with torch.no_grad():
        counted = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ WEIGHT), (torch.tensor(0), randn(2, 4)))
        scanned = associative_scan(lambda a, b: a + b, randn(4, 2), 0, combine_mode="generic")
    return counted, scanned


@program
def out_of_another_dtype():
    a, b = (torch.arange(16, dtype=torch.int8).reshape(4, 4) for _ in range(2))
    return out_dtype(torch.ops.aten.mm.default, torch.int32, a, b)


@program
def flex_attention():
    from torch.nn.attention.flex_attention import flex_attention as attend

    q = randn(1, 2, 16, 16)
    score = lambda score, b, h, i, j: score + (i - j)  # noqa: E731
    return attend(q, q, q), attend(q, q, q, score_mod=score)


@program
def checkpointed():
    x = randn(3, 3).requires_grad_()
    y = [checkpoint(lambda v: v.sin().exp(), x, use_reentrant=again) for again in (True, False)]
    return y, grads(y[1], x)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context, g):
        return g * 2 + context.saved_tensors[0]


@program
def custom_function():
    x = randn(3).requires_grad_()
    y = Twice.apply(x)
    return y, grads(y, x)


@torch.library.custom_op("enablekit_tests::where_on", mutates_args=())
def where_on(x: torch.Tensor, device: str, generator: str = "", dropout_p: float = 0.0) -> torch.Tensor:
    return x * 2


@program
def custom_operator_with_familiar_names():
    return where_on(torch.ones(3), device="shelf", generator="wind"), where_on(torch.ones(3), "table")


@program
def inference_mode():
    with torch.inference_mode():
        x = randn(2, 4)
        return (
            F.linear(x, WEIGHT),
            F.layer_norm(x, (4,)),
            F.silu(x),
            x.reshape(4, 2),
            F.batch_norm(x, torch.zeros(4), torch.ones(4), training=True),
        )


@program
def random_numbers():
    return torch.rand(3), F.dropout(torch.ones(20)), torch.randperm(5), torch.nn.init.normal_(torch.empty(3))


# Programs that raise


@program
def wrong_shapes():
    return torch.mm(torch.ones(2, 3), torch.ones(2, 3))


@program
def wrong_shapes_in_inference_mode():
    with torch.inference_mode():
        return F.linear(torch.ones(2, 3), torch.ones(2, 2))


@program
def wrong_nested():
    return strided_nested().split(1)


@program
def wrong_branch():
    return torch.cond(torch.tensor(True), lambda t: t.sin(), lambda t: (t, t), (torch.ones(2),))


@program
def branch_that_raises():
    return map_(lambda t: t @ torch.ones(7), torch.ones(3, 4))


def outcome(run):
    """The result, with tensors as bytes, or the exception."""
    torch._dynamo.reset()
    torch.manual_seed(3)
    try:
        return tree_map(_bits, run())
    except Exception as error:  # noqa: BLE001 - any, which has to be the same under the recorder
        return type(error), str(error).partition("\n")[0]


def _bits(value):
    if isinstance(value, torch.Tensor):
        t = value.detach().resolve_conj().resolve_neg().contiguous()
        return str(t.dtype), tuple(t.shape), bytes(t.reshape(-1).view(torch.uint8).numpy())
    return value


def run_recorded(run, path, **limits):
    """Return the outcome and the recorder."""
    with contextlib.ExitStack() as stack:
        recorder = stack.enter_context(Recorder(path, **limits))
        found = outcome(run)
    return found, recorder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_as_without_the_recorder(tmp_path, name):
    run = PROGRAMS[name]
    expected = outcome(run)
    found, recorder = run_recorded(run, tmp_path / "a.trace", per_signature=9)
    assert found == expected
    assert not recorder.errors and recorder.failure is None
    report = verify(Trace.open(tmp_path / "a.trace"))
    assert report.passed, report.mismatches
    run_recorded(run, tmp_path / "b.trace", dataflow=True)
    Trace.open(tmp_path / "b.trace").dataflow  # noqa: B018 - opens it


def calls_of(path):
    """How often each overload was called, by signature."""
    return {(s.overload, s.arguments): s.calls for s in Trace.open(path).signatures.values()}


def trained():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(), torch.nn.LayerNorm(4))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(randn(5, 4)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.detach().clone() for p in model.parameters()]


def test_a_recorder_does_not_see_what_another_one_calls(tmp_path):
    with Recorder(tmp_path / "alone.trace"):
        expected = trained()
    with Recorder(tmp_path / "outer.trace") as outer, Recorder(tmp_path / "inner.trace") as inner:
        found = trained()
    assert all(map(torch.equal, found, expected)) and not outer.errors and not inner.errors
    alone, *both = (calls_of(tmp_path / f"{name}.trace") for name in ("alone", "outer", "inner"))
    assert both == [alone, alone]


def test_operators_inside_higher_order_operators_are_recorded(tmp_path):
    with Recorder(tmp_path / "a.trace", ops=("aten::mm", "aten::sin")) as recorder:
        out_of_another_dtype()
        torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.ones(2),))
    assert recorder.skipped["higher-order operators"] == 2
    assert {name for name, _ in calls_of(tmp_path / "a.trace")} == {"aten::mm", "aten::sin"}


def test_an_error_of_the_decomposition_is_counted_and_the_call_runs_whole(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise KeyError("no parts")

    monkeypatch.setattr("capture.mode.parts_of", lambda op, args, kwargs: broken)
    with torch.inference_mode(), Recorder(tmp_path / "a.trace") as recorder:
        y = F.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert y.tolist() == [[3.0] * 4] * 2
    assert recorder.errors["aten::linear"] == {"count": 1, "first": "KeyError: 'no parts'"}
    monkeypatch.setattr("capture.mode.parts_of", broken)
    with torch.inference_mode(), Recorder(tmp_path / "b.trace") as recorder:
        F.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert recorder.errors["aten::linear"]["count"] == 1
    assert "aten::linear" in {name for name, _ in calls_of(tmp_path / "b.trace")}


@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_a_conjugated_or_negated_operand_is_stored_and_replayed_as_such(tmp_path, bit):
    x, y = (randn(3, 3, dtype=torch.complex64) for _ in range(2))
    lazy = x.conj() if bit == "conj" else torch._neg_view(x)
    with Recorder(tmp_path / "a.trace"):
        expected = torch.mm(lazy, y) if bit == "conj" else torch.ops.aten.clone(lazy)
    trace = Trace.open(tmp_path / "a.trace")
    (call,) = [r for r in trace.calls() if r.overload in ("aten::mm", "aten::clone")]
    seen = arguments_of(call, trace.packed(call))["self"]
    assert (seen.is_conj(), seen.is_neg()) == (bit == "conj", bit == "neg") and torch.equal(seen, lazy)
    assert torch.equal(run(trace, call, arguments_of(call, trace.packed(call))), expected)
    assert bit in describe(call.header)
    assert verify(trace).passed


def test_a_zero_tensor_is_named_with_its_reason(tmp_path):
    with Recorder(tmp_path / "a.trace") as recorder:
        torch._efficientzerotensor((3,)).clone()
    report = verify(Trace.open(tmp_path / "a.trace"))
    assert not recorder.errors and report.passed
    assert any("zero tensor" in reason for reason in report.not_comparable), report


def test_parameters_that_are_not_initialised_are_skipped_with_the_reason(tmp_path):
    with Recorder(tmp_path / "a.trace") as recorder:
        torch.nn.LazyLinear(2)(torch.ones(1, 3))
    assert recorder.skipped["parameters of lazy modules, not initialised yet"] > 0
    assert "aten::addmm" in {name for name, _ in calls_of(tmp_path / "a.trace")}
