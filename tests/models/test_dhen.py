import itertools

import pytest
import torch
import torch.nn.functional as F

from models import dhen

SMALL = {"tables": 3, "rows": 50, "dim": 4, "tokens": 2, "batch": 8}


def config(**settings):
    return dhen.Config(**{**SMALL, **settings})


def test_dot_products_of_all_pairs():
    interaction = dhen.DotInteraction(5, config())
    x = torch.rand(3, 5, 4)
    products = [(x[:, i] * x[:, j]).sum(dim=1) for i in range(5) for j in range(i)]
    expected = interaction.project(torch.stack(products, dim=1))  # [3, 10] to [3, 2 * 4]
    torch.testing.assert_close(interaction(x), expected.reshape(3, 2, 4))


def test_cross():
    interaction = dhen.CrossInteraction(5, config())
    x = torch.rand(3, 5, 4)
    flat = x.reshape(3, 20)
    linear = interaction.cross[0]
    crossed = flat * (flat @ linear.weight.T + linear.bias) + flat
    torch.testing.assert_close(interaction(x), interaction.project(crossed).reshape(3, 2, 4))


def test_a_linear_map_mixes_tokens():
    interaction = dhen.LinearInteraction(5, config())
    x = torch.rand(3, 5, 4)
    w = interaction.mix.weight  # [2, 5]
    expected = [sum(w[k, m] * x[:, m] for m in range(5)) for k in range(2)]
    torch.testing.assert_close(interaction(x), torch.stack(expected, dim=1))


def test_attention():
    interaction = dhen.AttentionInteraction(5, config(heads=2))
    x = torch.rand(3, 5, 4)
    q, k, v = interaction.query_key_value(x).chunk(3, dim=2)
    heads = []
    for h in (slice(0, 2), slice(2, 4)):
        scores = torch.einsum("btc,bsc->bts", q[..., h], k[..., h]) / 2**0.5
        heads.append(torch.softmax(scores, dim=2) @ v[..., h])
    attended = F.layer_norm(x + interaction.output(torch.cat(heads, dim=2)), (4,))
    expected = torch.einsum("km,bmc->bkc", interaction.mix.mix.weight, attended)
    torch.testing.assert_close(interaction(x), expected)


@pytest.mark.parametrize("ensemble", dhen.ENSEMBLES)
def test_a_layer_adds_its_tokens_and_normalises(ensemble):
    layer = dhen.HierarchyLayer(5, config(ensemble=ensemble))
    x = torch.rand(3, 5, 4)
    found = [interaction(x) for interaction in layer.interactions]
    assert [type(i).__name__ for i in layer.interactions] == [
        "DotInteraction", "CrossInteraction", "AttentionInteraction", "LinearInteraction",
    ]  # fmt: skip
    assert {tuple(tokens.shape) for tokens in found} == {(3, 2, 4)}
    together = torch.cat(found, dim=1) if ensemble == "concat" else sum(found)
    shortcut = torch.einsum("km,bmc->bkc", layer.shortcut.mix.weight, x)
    torch.testing.assert_close(layer(x), F.layer_norm(together + shortcut, (4,)))


def test_the_residual_of_as_many_tokens_is_the_tokens_themselves():
    layer = dhen.HierarchyLayer(2, config(interactions="linear"))
    x = torch.rand(3, 2, 4)
    torch.testing.assert_close(layer(x), F.layer_norm(x + layer.interactions[0](x), (4,)))


def test_the_whole_model():
    training = dhen.build(config(layers=3))
    model = training.model
    dense, offsets, indices, _ = batch = next(training.batches)
    x = torch.stack([model.bottom(dense), *(t.weight[indices[i]] for i, t in enumerate(model.tables))], dim=1)
    assert x.shape == (8, 4, 4)
    for layer in model.layers:
        x = layer(x)
        assert x.shape == (8, 4 * 2, 4)
    logits = training.forward(batch)
    assert logits.shape == (8, 1)
    torch.testing.assert_close(logits, model.top(x.reshape(8, -1)))


SOME = ["dot", "cross,cross", "attention,linear", "dot,cross,attention,linear"]


@pytest.mark.parametrize(("interactions", "ensemble"), list(itertools.product(SOME, dhen.ENSEMBLES)))
def test_it_learns_with_any_interactions(interactions, ensemble):
    training = dhen.build(config(interactions=interactions, ensemble=ensemble, lr=0.05))
    batch = next(training.batches)
    losses = [training.step(batch).item() for _ in range(20)]
    assert losses[-1] < losses[0] - 0.01
    training.loss(training.forward(batch), batch).backward()
    lacking = [name for name, p in training.model.named_parameters() if p.grad is None]
    assert not lacking


BAD = {
    "no layer": ({"layers": 0}, "layers 0 is not above 0"),
    "no token": ({"tokens": 0}, "tokens 0 is not above 0"),
    "no head": ({"heads": 0}, "heads 0 is not above 0"),
    "heads that do not divide": ({"heads": 3}, "dim 16 is not a multiple of heads 3"),
    "ensemble": ({"ensemble": "mean"}, "ensemble 'mean' is not one of: concat, sum"),
    "interaction": (
        {"interactions": "dot,convolution"},
        "interaction 'convolution' is not one of: dot, cross, attention, linear",
    ),
    "no interaction": ({"interactions": ""}, "interaction '' is not one of: dot, cross, attention, linear"),
    "one token": (
        {"interactions": "dot", "tokens": 1},
        "tokens 1 leaves no pair to the dot products of the second layer",
    ),
    "one token of sums": (
        {"ensemble": "sum", "tokens": 1},
        "tokens 1 leaves no pair to the dot products of the second layer",
    ),
}


@pytest.mark.parametrize(("settings", "message"), BAD.values(), ids=BAD.keys())
def test_bad_settings_are_one_line(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        dhen.Config(**settings)
