"""Subgraphs as operators: names, definitions, and damaged ones."""

import json

import pytest
import torch

from traces import TraceError, UserError
from traces.overloads import kind, name_of, resolve
from traces.subgraphs import Subgraph, SubgraphCall, SubgraphInput, subgraph_of

ADD = SubgraphCall("aten::add.Tensor", {"self": {"tensor": 0}, "other": {"tensor": 1}, "alpha": 1})
GELU = SubgraphCall("aten::gelu", {"self": {"tensor": 2}, "approximate": "tanh"})
MAX = SubgraphCall("aten::max.dim", {"self": {"tensor": 3}, "dim": 0, "keepdim": False}, results=2)


MATRIX, ROW = SubgraphInput("float32", (None, None)), SubgraphInput("bfloat16", (None,))


def add_gelu_max():
    return Subgraph((MATRIX, ROW), (ADD, GELU, MAX), (3, 5))


def test_a_subgraph_is_an_operator():
    op = add_gelu_max().define()
    x, y = torch.randn(5, 7), torch.randn(7).bfloat16()
    made, places = op(x, y)
    expected = torch.nn.functional.gelu(x + y, approximate="tanh")
    assert torch.equal(made, expected) and torch.equal(places, expected.max(0).indices)
    assert resolve(name_of(op)) is op and kind(op) == "compute"
    assert subgraph_of(name_of(op)) == add_gelu_max() and subgraph_of("aten::add.Tensor") is None
    assert op(x.to("meta"), y.to("meta"))[1].shape == (7,)  # so that PyTorch can trace it


def test_names_follow_from_what_is_computed():
    overload = add_gelu_max().overload
    assert overload.startswith("fused::add_gelu_max_")
    others = [
        SubgraphInput("float32", (None,)),
        SubgraphInput("bfloat16", (None, None)),
        SubgraphInput("bfloat16", (1,)),
    ]
    assert overload not in {Subgraph((MATRIX, other), (ADD, GELU, MAX), (3, 5)).overload for other in others}
    assert Subgraph.of_json(add_gelu_max().as_json(), "x").overload == overload


@pytest.mark.parametrize("shape", [(1,), (5, 7), ()])
def test_inputs_are_broadcast_as_they_were_found(shape):
    """A subgraph that adds a row adds no column, and no single number: that is another one."""
    with pytest.raises(RuntimeError, match=r"a1 has shape .* expected bfloat16 \[n\]"):
        add_gelu_max().define()(torch.randn(5, 7), torch.randn(shape).bfloat16())
    assert SubgraphInput.like("bfloat16", shape).takes(shape)


def test_devices_among_arguments_are_those_of_the_tensors():
    cast = SubgraphCall("aten::_to_copy", {"self": {"tensor": 0}, "dtype": {"dtype": "float16"}, "layout": None,
                                   "device": {"device": "cuda:0"}, "pin_memory": None, "non_blocking": False,
                                   "memory_format": None})  # fmt: skip
    vector = SubgraphInput("float32", (None,))
    assert Subgraph((vector,), (cast,), (1,)).run(torch.ones(3)).device.type == "cpu"


def test_unknown_subgraphs_are_told_with_the_next_command():
    with pytest.raises(UserError, match="enable fuse"):
        subgraph_of("fused::never_found_00000000")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 9}, "format 9"),
        ({"steps": []}, "0 steps"),
        ({"inputs": [{"dtype": "float33", "shape": []}]}, "unknown dtype"),
        ({"inputs": [{"dtype": "float32", "shape": [2]}]}, "neither 1 nor null"),
        ({"inputs": [{"dtype": "float32", "shape": []}]}, "not there yet"),
        ({"inputs": ["float32"]}, "not a subgraph"),
        ({"outputs": [0]}, "numbers of results"),
        ({"outputs": None}, "not a subgraph"),
        ({"steps": 3}, "not a subgraph"),
    ],
)
def test_damaged_ones_are_refused_by_name(change, told):
    given = {**json.loads(json.dumps(add_gelu_max().as_json())), **change}
    if change == {"inputs": ["float32"]}:
        given["steps"][0]["arguments"]["other"] = {"tensor": 7}
    with pytest.raises(TraceError, match=f"file.json.*{told}"):
        Subgraph.of_json(given, "file.json")


def test_operators_that_this_pytorch_lacks_are_named():
    given = json.loads(json.dumps(add_gelu_max().as_json()))
    given["steps"][0]["overload"] = "aten::no_such_thing"
    with pytest.raises(UserError, match="no such operator"):
        Subgraph.of_json(given, "file.json")
