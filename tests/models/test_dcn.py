import pytest
import torch

from models import dcn

SMALL = {"tables": 3, "rows": 50, "dim": 4, "batch": 8}
WIDTH = 13 + 3 * 4


def build(**settings):
    return dcn.build(dcn.Config(**{**SMALL, **settings}))


def test_a_full_cross_layer():
    cross = dcn.FullCross(3)
    torch.nn.init.normal_(cross.project.bias)
    x0, x = torch.rand(2, 3), torch.rand(2, 3)
    w, b = cross.project.weight, cross.project.bias
    for n in range(2):
        for i in range(3):
            crossed = x0[n, i] * (sum(w[i, j] * x[n, j] for j in range(3)) + b[i]) + x[n, i]
            torch.testing.assert_close(cross(x0, x)[n, i], crossed)


def test_a_cross_layer_of_low_rank_is_the_gated_sum_of_its_experts():
    width, rank, experts = 7, 3, 4
    cross = dcn.LowRankCross(width, rank, experts)
    bias = torch.nn.init.normal_(cross.expand.bias)
    x0, x = torch.rand(5, width), torch.rand(5, width)
    gates = torch.softmax(x @ cross.gate.weight.T, dim=1)
    total = x
    for i in range(experts):
        v = cross.reduce.weight[i * rank : (i + 1) * rank]  # [rank, width]
        u = cross.expand.weight[:, i * rank : (i + 1) * rank]  # [width, rank]
        inner = torch.tanh(torch.tanh(x @ v.T) @ cross.inner[i])
        total = total + gates[:, i : i + 1] * (x0 * (inner @ u.T + bias))
    torch.testing.assert_close(cross(x0, x), total)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("structure", dcn.STRUCTURES)
def test_the_whole_model(structure, rank):
    training = build(structure=structure, rank=rank, cross_layers=2)
    model = training.model
    dense, offsets, indices, _ = batch = next(training.batches)
    x0 = torch.cat([dense, *(table.weight[indices[i]] for i, table in enumerate(model.tables))], dim=1)
    assert x0.shape == (8, WIDTH)
    crossed = model.cross[1](x0, model.cross[0](x0, x0))
    features = torch.cat([crossed, model.deep(x0)], dim=1) if structure == "parallel" else model.deep(crossed)
    logits = training.forward(batch)
    assert logits.shape == (8, 1)
    torch.testing.assert_close(logits, model.top(features))
    assert {type(cross) for cross in model.cross} == {dcn.LowRankCross if rank else dcn.FullCross}


def test_the_loss_is_that_of_the_probability():
    training = build()
    batch = next(training.batches)
    logits, label = training.forward(batch), batch[3]
    p = 1 / (1 + torch.exp(-logits))
    expected = -(label * p.log() + (1 - label) * (1 - p).log()).mean()
    torch.testing.assert_close(training.loss(logits, batch), expected)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("structure", dcn.STRUCTURES)
def test_it_learns_in_every_structure(structure, rank):
    training = build(structure=structure, rank=rank, lr=0.1)
    batch = next(training.batches)
    losses = [training.step(batch).item() for _ in range(15)]
    assert losses[-1] < losses[0] - 0.01


def test_every_parameter_has_a_gradient():
    training = build()
    batch = next(training.batches)
    training.loss(training.forward(batch), batch).backward()
    lacking = [name for name, p in training.model.named_parameters() if p.grad is None]
    assert not lacking


BAD = {
    "no cross layer": ({"cross_layers": 0}, "cross_layers 0 is not above 0"),
    "no expert": ({"experts": 0}, "experts 0 is not above 0"),
    "rank": ({"rank": -1}, "rank -1 is below 0, which stands for a full matrix"),
    "structure": ({"structure": "beside"}, "structure 'beside' is not one of: parallel, stacked"),
}


@pytest.mark.parametrize(("settings", "message"), BAD.values(), ids=BAD.keys())
def test_bad_settings_are_one_line(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        dcn.Config(**settings)
