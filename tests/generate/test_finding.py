"""What of a dataflow is found worth fusing, and what never is."""

import torch

from capture import Recorder
from generate.subgraphs.finding import MAX_INPUTS, PASSES, barriers, find
from traces import Trace
from traces.dataflow import without_own_device


def found_in(tmp_path, program, **how):
    """(kind, base names of the steps, inputs, outputs) of each subgraph, and the flow."""
    with Recorder(tmp_path / "x.trace", dataflow=True) as recorder:
        alive = program()
    assert not recorder.errors
    flow = Trace.open(tmp_path / "x.trace").dataflow
    occurrences = find(flow, **how)
    assert_sound(flow, occurrences)
    del alive
    return [(o.kind, steps(o), len(o.inputs), len(o.outputs)) for o in occurrences], flow, occurrences


def steps(occurrence):
    return [s.overload.removeprefix("aten::").partition(".")[0] for s in occurrence.subgraph.steps]


def assert_sound(flow, occurrences):
    """Computing calls are in one subgraph each; all subgraphs, and the calls between, can run in some order."""
    node = {}
    for n, o in enumerate(occurrences):
        assert len(o.inputs) <= MAX_INPUTS
        node |= {i: f"group {n}" for i in o.calls if i not in node}
    makers = {}
    for i, call in enumerate(flow.calls):
        for value in call.results:
            if value is not None and value not in call.reads and value not in flow.sources:
                makers.setdefault(value, i)
    needs = {}
    for i, call in enumerate(flow.calls):
        mine = node.get(i, i)
        needs.setdefault(mine, set()).update(node.get(makers[v], makers[v]) for v in call.reads if v in makers)
    done = set()
    while len(done) < len(needs):
        ready = {n for n, before in needs.items() if n not in done and before <= done | {n}}
        assert ready, "subgraphs wait for each other"
        done |= ready


def test_a_chain_is_found_with_its_casts_and_broadcasts(tmp_path):
    x, w = torch.randn(4, 8), torch.randn(8)
    found, _, (o,) = found_in(tmp_path, lambda: (x * w).exp().to(torch.bfloat16))
    assert found == [("pointwise", ["mul", "exp", "_to_copy"], 2, 1)]
    assert o.launches == 2 and o.nbytes == 2 * (4 * 8 * 4) * 2
    made = o.subgraph.define()(x, w)
    assert torch.equal(made, (x * w).exp().to(torch.bfloat16))


def test_what_is_read_outside_is_an_output(tmp_path):
    x = torch.randn(4, 8)

    def program():
        a = x * 2
        b = a.exp()
        return b.t(), a @ torch.ones(8, 2)  # a view of one, and a product of the other

    found, _, _ = found_in(tmp_path, program, kinds=("pointwise",))
    assert found == [("pointwise", ["mul", "exp"], 1, 2)]


def test_a_path_that_leaves_and_comes_back_is_none(tmp_path):
    x = torch.randn(8, 8)

    def program():
        a = x.exp()
        return a + torch.cumsum(a, 0)

    found, _, _ = found_in(tmp_path, program)
    assert found == []


def test_subgraphs_that_would_wait_for_each_other(tmp_path):
    x, y = torch.randn(4, 4), torch.randn(4, 4)

    def program():
        a, b = x.exp(), y.exp()
        c, d = torch.cumsum(a, 0), torch.cumsum(b, 0)
        return a * d, b * c, b * 2, a * 2

    found, _, _ = found_in(tmp_path, program)
    assert len(found) == 2  # and `found_in` saw that these have an order


def test_products_take_what_is_done_to_their_results(tmp_path):
    x, w, b = torch.randn(6, 4), torch.randn(5, 4), torch.randn(5)

    def program():
        h = torch.nn.functional.gelu(torch.nn.functional.linear(x.view(2, 3, 4), w, b))
        return h + 1

    found, _, (o,) = found_in(tmp_path, program)
    assert found == [("product", ["addmm", "view", "gelu", "add"], 3, 1)]
    assert o.subgraph.steps[1].arguments["size"] == [-1, 3, 5]  # for any batch


def test_products_leave_what_only_reductions_read_to_these(tmp_path):
    """Root mean squares: the squares, which nobody else reads, are made where their mean is."""
    x, w = torch.randn(6, 4), torch.randn(5, 4)

    def program():
        h = torch.nn.functional.linear(x, w) + 1
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True))

    found, _, _ = found_in(tmp_path, program)
    steps = ["pow", "mean", "rsqrt", "mul"]
    assert found == [("product", ["mm", "add"], 2, 1), ("reduction", steps, 1, 1)]


def test_what_others_leave_is_found_beside_them(tmp_path):
    x, w = torch.randn(6, 4), torch.randn(5, 4)
    program = lambda: (torch.nn.functional.linear(x, w) + 1).relu().softmax(-1)  # noqa: E731
    _, flow, (product, reduction) = found_in(tmp_path, program)
    assert [o.calls for o in find(flow, PASSES[1], [product])] == [reduction.calls]
    (other,) = find(flow, PASSES[2])
    assert set(other.calls) < {*product.calls, *reduction.calls}


def test_a_subgraph_is_of_one_phase(tmp_path):
    """What backward computes of a result of forward alone is none of forward's business, though it could run there."""
    w = torch.randn(4, requires_grad=True)

    def program():
        (w.exp() * 2).sin().sum().backward()

    found, flow, occurrences = found_in(tmp_path, program)
    phases = [{flow.calls[i].phase for i in o.calls} for o in occurrences]
    assert phases == [{"forward"}, {"backward"}] and found[1][1] == ["cos", "mul", "mul", "mul"]


def test_reductions_take_what_stands_before_and_after(tmp_path):
    x = torch.randn(6, 4)
    found, _, _ = found_in(tmp_path, lambda: ((x * 2).exp().sum(-1)).sqrt())
    assert found == [("reduction", ["mul", "exp", "sum", "sqrt"], 1, 1)]


def test_layer_norm_forward_and_backward(tmp_path):
    x, norm = torch.randn(6, 4, requires_grad=True), torch.nn.LayerNorm(4)

    def program():
        (norm(x * 2) * 3).pow(2).sum().backward()
        return x

    found, _, _ = found_in(tmp_path, program)
    reductions = [names for kind, names, *_ in found if kind == "reduction"]
    assert reductions[0][:3] == ["mul", "native_layer_norm", "mul"]
    assert any("native_layer_norm_backward" in names for names in reductions)


def test_attention_in_parts_is_one(tmp_path):
    q, k, v = (torch.randn(2, 5, 4) for _ in range(3))

    def program():
        return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.5, -1), v)

    found, _, _ = found_in(tmp_path, program)
    assert found == [("attention", ["bmm", "mul", "_softmax", "bmm"], 3, 1)]


def test_effects_stay_outside_and_say_why(tmp_path):
    x = torch.randn(16, 4)

    def program():
        a = torch.nn.functional.dropout(x.exp(), 0.5)
        a.mul_(2)
        chosen = torch.masked_select(a, a > 0)
        return chosen, a.to(torch.float64, copy=True).sum().item()

    found, flow, _ = found_in(tmp_path, program)
    reasons = barriers(flow)
    assert "writes an argument" in reasons["aten::mul_.Tensor"]
    assert "decides by data how large" in reasons["aten::masked_select"]
    assert any("draws random numbers" in r for r in reasons.values())
    assert not any(set(names) & {"mul_", "masked_select", "bernoulli_", "native_dropout"} for _, names, *_ in found)


def test_a_write_between_two_reads_keeps_them_apart(tmp_path):
    x = torch.randn(16, 4)

    def program():
        a = x.exp()
        b = a * 2
        a.add_(1)
        return b + a  # reads what `a` is now

    found, _, _ = found_in(tmp_path, program)
    assert [names for _, names, *_ in found] in ([["exp", "mul"]], [])


def test_equal_subgraphs_of_other_sizes_have_one_name(tmp_path):
    def program():
        return [(torch.ones(n, 3) * 2).exp() for n in (2, 5)]

    _, _, occurrences = found_in(tmp_path, program)
    assert len(occurrences) == 2 and len({o.subgraph.overload for o in occurrences}) == 1


def test_a_view_of_a_view_that_was_there_before_ends(tmp_path):
    w = torch.randn(4, 8)
    found, _, _ = found_in(tmp_path, lambda: (w.t().exp(), w.t().t().t().exp() * 2))
    assert [kind for kind, *_ in found] == ["pointwise"]


def test_a_cast_where_the_tensor_is_moves_nothing():
    x = torch.ones(3)
    here = {"self": x, "dtype": torch.float16, "device": torch.device("cpu")}
    assert without_own_device(here, [x])["device"] is None
    for elsewhere in (torch.device("meta"), torch.device("cpu", 1), "cuda"):
        assert without_own_device({**here, "device": elsewhere}, [x])["device"] == elsewhere
    assert without_own_device({"device": "cpu"}, []) == {"device": "cpu"}  # it makes its result there
