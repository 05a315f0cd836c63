"""Copies that a graph can do without, and those that it cannot."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from enable.fuse.copies import drop_copies

X = torch.randn(4, 6)


def twice_views(x):
    y = x * 2
    return y.view(6, 4), y.clone().view(24)


@pytest.mark.parametrize(
    ("function", "dropped"),
    [
        (lambda x: (x * 2).clone().exp(), 1),
        (lambda x: x.clone().clone().exp(), 2),
        (lambda x: (x * 2).clone(), 1),
        (lambda x: x.clone(), 0),  # the result would be the input itself
        (lambda x: x.t().clone().t().view(24), 0),
        (lambda x: x.t().clone().t().view(24).exp(), 1),
        (lambda x: x.clone().split(2)[0], 0),
        (twice_views, 0),  # two results would be of one memory
        (lambda x: (lambda y: (y, y.clone().exp()))(x * 2), 1),
        (lambda x: x[:1].expand(4, 6).clone().exp(), 0),  # it lies otherwise
        (lambda x: (x * 2).clone(memory_format=torch.contiguous_format).exp(), 1),
        (lambda x: (lambda y: y.clone().add_(y))(x * 2), 0),  # something is written
    ],
)
def test_copies_go_where_nobody_can_tell(function, dropped):
    module = make_fx(function, tracing_mode="fake")(X)
    expected = function(X.clone())
    assert drop_copies(module) == dropped
    found = module(X.clone())
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
        assert torch.equal(a, b) and a.stride() == b.stride()


def test_a_constant_of_a_graph_is_not_handed_out():
    """Whoever writes to the result would change what the next call gives."""
    graph = torch.fx.Graph()
    copy = graph.call_function(torch.ops.aten.clone.default, (graph.get_attr("held"),))
    for node in (copy, copy.args[0]):
        node.meta["val"] = X
    graph.output(copy)
    module = torch.fx.GraphModule({"held": X.clone()}, graph)
    assert drop_copies(module) == 0 and module() is not module.held
