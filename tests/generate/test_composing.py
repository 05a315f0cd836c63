"""Kernels composed of the library's functions, run in Triton's interpreter beside PyTorch."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton

from pathlib import Path

import pytest
import torch
from shared import packaged
from torch.fx.experimental.proxy_tensor import make_fx

from enable.fuse.graphs import FlowOfGraph
from enable.serve.modules import load_wrapper, set_up_triton
from generate.subgraphs.composing import Uncomposable, compose
from generate.subgraphs.finding import find

aten, gelu = torch.ops.aten, torch.nn.functional.gelu
BF16, FP32 = torch.bfloat16, torch.float32
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning", "ignore::DeprecationWarning"),
]


def drawn(*shape, dtype=FP32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def subgraphs(function, *tensors):
    """What is found in a function, each with the values of its inputs."""
    module = make_fx(function)(*tensors)
    graph, values = FlowOfGraph(module), {}

    class Noting(torch.fx.Interpreter):
        def run_node(self, n):
            values[n] = super().run_node(n)
            return values[n]

    Noting(module).run(*tensors)
    nodes = {value: node for node, value in reversed(graph.values.items())}
    return [(o.kind, o.subgraph, [values[nodes[v]] for v in o.inputs]) for o in find(graph.flow)]


def composed(subgraph, tensors):
    set_up_triton(interpreted=True)
    text = compose(subgraph, [t.shape for t in tensors])
    kernel = packaged().parse(text, Path(f"/{subgraph.overload.partition('::')[2]}.py"))
    assert kernel.overloads == (subgraph.overload,)
    return load_wrapper(kernel.path, kernel.source)


def listed(results):
    return list(results) if isinstance(results, tuple) else [results]


def dropped(g, mask, x):
    return aten.gelu_backward(aten.native_dropout_backward(g, mask, 1.25), x)


def with_sums(g, x):
    made = aten.gelu_backward(g, x)
    return made, made.sum([0], True).to(FP32)


def summed_and_normalized(x, y, weight, bias):
    z = x + y
    return z, *aten.native_layer_norm(z, [8], weight, bias, 1e-5)


def normalized_back(g, h, x, mean, rstd, w, b):
    found = aten.native_layer_norm_backward(g.float(), x, [8], mean, rstd, w, b, [True] * 3)
    return found[0] + h, found[1], found[2].to(BF16)


def product_and_gelu(bias, x, weight):
    y = aten.addmm(bias, x, weight)
    return y, gelu(y)


SMALL, ROW = drawn(4, 8), drawn(8)
CUBE, HALF_CUBE = drawn(3, 4, 8), drawn(3, 4, 8, dtype=BF16)
HALVES, MATRICES = (SMALL.to(BF16), drawn(4, 1).to(BF16)), (drawn(4, 16), drawn(16, 8))
CASES = {
    "chain": ("pointwise", lambda x, b: gelu(x + b, approximate="tanh") * 2, SMALL, ROW),
    "casts": ("pointwise", lambda x, b: ((x.to(BF16) + b).to(FP32) * 3).relu(), SMALL, ROW.to(BF16)),
    "choice": ("pointwise", lambda x, b: torch.where(x > 0, x * b, x - b).sigmoid(), *HALVES),
    "two results": ("pointwise", lambda x, y: (x + y, (x + y).exp() * x), SMALL, drawn(4, 8)),
    "dropout backward": ("pointwise", dropped, SMALL, SMALL > 0, drawn(4, 8)),
    "threshold": ("pointwise", lambda g, y: aten.threshold_backward(g * 2, y, 0).to(BF16), SMALL, drawn(4, 8).relu()),
    "addcmul": ("pointwise", lambda a, b, c: torch.addcmul(a, b, c, value=0.5).tanh(), SMALL, ROW, drawn(4, 1)),
    "transposed": ("pointwise", lambda a, b: (a + b).exp() * 2, drawn(8, 4).t(), SMALL),
    "all transposed": ("pointwise", lambda a, b: (a + b).exp() * 2, drawn(8, 4).t(), drawn(8, 4).t()),
    "views": ("pointwise", lambda x, b: ((x * 2).view(12, 8) + b).relu(), CUBE, ROW),
    "integers": ("pointwise", lambda x, y: (x * 3 + y).remainder(5).eq(2), torch.arange(8), torch.arange(8)),
    "softmax": ("reduction", lambda x: torch.softmax(x * 0.125, -1).to(BF16), CUBE),
    "log_softmax": ("reduction", lambda x: torch.log_softmax(x.float(), -1), HALF_CUBE),
    "sum": ("reduction", lambda x, y: (x * y).sum(-1, keepdim=True) * 2 + 1, CUBE, ROW),
    "sum without its dimension": ("reduction", lambda x, y: (x * y).sum(-1).relu() + 1, CUBE, ROW),
    "mean": ("reduction", lambda x, y: (x - y).mean(-1), HALF_CUBE, ROW.to(BF16)),
    "amax": ("reduction", lambda x, y: x / (x * y).amax(-1, keepdim=True), CUBE, ROW),
    "two dimensions": ("reduction", lambda x, y: (x * y).sum([1, 2], keepdim=True), CUBE, ROW),
    "columns": ("reduction", with_sums, drawn(12, 8, dtype=BF16), drawn(12, 8, dtype=BF16)),
    "layer norm": ("reduction", summed_and_normalized, CUBE, drawn(3, 4, 8), ROW, drawn(8)),
    "layer norm backward": (
        "reduction", normalized_back, HALF_CUBE, CUBE, drawn(3, 4, 8), drawn(3, 4, 1), drawn(3, 4, 1).abs(), ROW, ROW,
    ),  # fmt: skip
    "softmax backward": (
        "reduction",
        lambda g, y: aten._softmax_backward_data(g, y, -1, FP32) * 0.5,
        CUBE,
        CUBE.softmax(-1),
    ),
    "sum of all": ("reduction", lambda x, y: (x * y).sum() * 2, SMALL, drawn(4, 8)),
    "between": ("reduction", lambda x, y: (x * y).sum(1).exp(), CUBE, drawn(3, 4, 8)),
    "product of columns": ("reduction", lambda x, y: (x + y).prod(0), SMALL, drawn(4, 8)),
    "product and row": ("product", lambda x, w, b: gelu(x @ w + b), SMALL, drawn(8, 8), ROW),
    "product": ("product", lambda b, x, w, y: aten.addmm(b, x, w).view(2, 2, 8) + y, ROW, *MATRICES, drawn(2, 2, 8)),
    "product with two results": ("product", product_and_gelu, ROW.to(BF16), *(m.to(BF16) for m in MATRICES)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_composed_kernel_does_what_pytorch_does(name):
    kind, function, *tensors = CASES[name]
    ((found, subgraph, given),) = subgraphs(function, *tensors)
    assert found == kind
    results = listed(composed(subgraph, given)(*given))
    half = any(t.dtype == BF16 for t in (*given, *results))
    for result, expected in zip(results, listed(subgraph.run(*given)), strict=True):
        assert result.dtype == expected.dtype and result.stride() == expected.stride()
        torch.testing.assert_close(result, expected, rtol=2e-2 if half else 2e-5, atol=2e-2 if half else 2e-5)


def test_it_serves_other_sizes_and_declines_what_is_broadcast_otherwise():
    ((_, subgraph, given),) = subgraphs(summed_and_normalized, CUBE, drawn(3, 4, 8), ROW, drawn(8))
    wrapper = composed(subgraph, given)
    for x, y in ((drawn(5, 70, 8), drawn(70, 5, 8).transpose(0, 1)), (drawn(0, 3, 8), drawn(0, 3, 8))):
        for result, expected in zip(wrapper(x, y, ROW, ROW), subgraph.run(x, y, ROW, ROW), strict=True):
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    for x, y in ((CUBE[None], CUBE), (CUBE, CUBE[:1]), (ROW, ROW)):
        for run in (wrapper, subgraph.run):
            with pytest.raises(RuntimeError, match="this kernel was composed|has shape .*, expected float32"):
                run(x, y, ROW, ROW)


def root_mean_squares(x, w):
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return w * (x * scale), scale


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_what_a_row_is_scaled_by_lies_as_the_row_does(order):
    """What is left of a reduction is broadcast over its rows, and has no say in how these lie."""
    x = drawn(*(CUBE.shape[d] for d in order)).permute([order.index(d) for d in range(3)])
    ((_, subgraph, given),) = subgraphs(root_mean_squares, CUBE, ROW)
    for result, expected in zip(composed(subgraph, given)(x, ROW), subgraph.run(x, ROW), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
        assert result.stride() == expected.stride()


@pytest.mark.parametrize("spaced", [False, True])
def test_operands_of_a_view_of_a_product_lie_as_they_like(spaced):
    a, b, scale = drawn(12, 5), drawn(5, 8), drawn(3, 4, 8)
    scale = torch.stack([scale, scale], 1)[:, 0] if spaced else scale  # no view of it is [12, 8]
    ((_, subgraph, given),) = subgraphs(
        lambda a, b, s: (lambda p: (p, p.view(3, 4, 8) * s))(a @ b), a, b, drawn(3, 4, 8)
    )
    for result, expected in zip(composed(subgraph, given)(a, b, scale), subgraph.run(a, b, scale), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
        assert result.stride() == expected.stride()


def test_an_intermediate_is_rounded_only_where_a_cast_says_so():
    x, third = torch.full((4,), 1.0), torch.full((4,), 1 / 3)
    ((_, cast, given),) = subgraphs(lambda x, y: (x * y).to(BF16).to(FP32) * 3, x, third)
    assert composed(cast, given)(*given)[0] == torch.tensor(1 / 3).to(BF16).to(FP32) * 3
    x, third = x.to(BF16), third.to(BF16)
    ((_, kept, given),) = subgraphs(lambda x, y: ((x + y) + y).to(FP32), x, third)
    assert composed(kept, given)(*given)[0] == 1 + 2 * third[0].to(FP32)


@pytest.mark.parametrize(
    ("function", "tensors", "reason"),
    [
        (lambda x, y: torch.bmm(x, y) + x, (drawn(2, 4, 4), drawn(2, 4, 4)), "launches one_warp_kernel itself"),
        (lambda x, y: (lambda z: z / z.sum(0))(x * y), (SMALL, drawn(4, 8)), "columns is used in the rows again"),
        (lambda x, y: (x * y).sum(0) + y, (SMALL, ROW), "a sum down columns is combined with another tensor"),
        (lambda x: (x * 2).clone(memory_format=torch.channels_last), (drawn(2, 3, 4, 4),), "clone to"),
    ],
)  # fmt: skip
def test_what_cannot_be_composed_says_why(function, tensors, reason):
    found = [(subgraph, given) for _, subgraph, given in subgraphs(function, *tensors) if len(subgraph.steps) > 1]
    ((subgraph, given),) = found
    with pytest.raises(Uncomposable, match=reason):
        compose(subgraph, [t.shape for t in given])


def test_rows_that_are_too_long_are_declined():
    ((_, subgraph, given),) = subgraphs(lambda x: torch.softmax(x * 2, -1), SMALL)
    with pytest.raises(NotImplementedError, match="a row has 70000 elements"):
        composed(subgraph, given)(torch.zeros(2, 70000))


def test_operands_of_a_product_may_lie_in_any_order():
    ((_, subgraph, given),) = subgraphs(lambda x, w, y: x @ w + y, SMALL, drawn(8, 8), drawn(4, 8))
    other = drawn(8, 4).t()
    torch.testing.assert_close(composed(subgraph, given)(*given[:2], other), subgraph.run(*given[:2], other))
