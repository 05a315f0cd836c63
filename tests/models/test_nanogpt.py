import math

import pytest
import torch

from models import nanogpt

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 8, "batch": 4}


def build(**settings):
    return nanogpt.build(nanogpt.Config(**{**SMALL, **settings}))


def test_the_size_of_the_default_model_is_known():
    """Per layer 12 n_embd^2 weights and 2 n_embd norms; embeddings of positions and tokens, the latter shared."""
    model = nanogpt.build(nanogpt.Config()).model
    n, vocabulary = 128, model.lm_head.out_features
    expected = 4 * (12 * n * n + 2 * n) + n + 64 * n + vocabulary * n
    assert sum(p.numel() for p in model.parameters()) == expected
    assert model.wte.weight is model.lm_head.weight


def test_a_position_does_not_see_those_after_it():
    model = build().model.eval()
    tokens = torch.randint(10, (1, 8))
    changed = tokens.clone()
    changed[0, 5] += 1
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.equal(before[0, 5:], after[0, 5:])


def test_initial_weights():
    model = build(n_embd=64, n_layer=3, bias=True).model
    assert model.h[0].mlp.c_fc.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.h[0].mlp.c_proj.weight.std().item() == pytest.approx(0.02 / math.sqrt(6), rel=0.05)
    assert not model.h[0].attn.c_attn.bias.any()


def test_the_first_loss_is_that_of_a_guess():
    training = build()
    vocabulary = training.model.lm_head.out_features
    assert training.step(next(training.batches)).item() == pytest.approx(math.log(vocabulary), rel=0.02)


@pytest.mark.parametrize("optimizer", nanogpt.OPTIMIZERS)
def test_it_learns(optimizer):
    training = build(optimizer=optimizer, lr=0.1 if optimizer == "sgd" else 1e-3)
    batch = next(training.batches)
    losses = [training.step(batch).item() for _ in range(20)]
    assert losses[-1] < losses[0] - 0.1


def test_only_matrices_decay():
    groups = build(bias=True).optimizer.param_groups
    assert [g["weight_decay"] for g in groups] == [0.1, 0.0]
    assert all(p.dim() >= 2 for p in groups[0]["params"])
    assert all(p.dim() < 2 for p in groups[1]["params"])
    assert groups[0]["betas"] == (0.9, 0.95)


def test_targets_are_the_next_characters():
    x, y = next(build().batches)
    assert x.shape == y.shape == (4, 8)
    assert torch.equal(x[:, 1:], y[:, :-1])


def test_phases_of_a_step():
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def phase(name):
        seen.append(name)
        yield

    for clip, expected in ((1.0, ["clip"]), (0.0, [])):
        seen.clear()
        training = build(grad_clip=clip)
        training.step(next(training.batches), phase)
        assert seen == ["forward", "loss", "backward", *expected, "optimizer"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "lion"}, "optimizer 'lion' is not one of: adamw, adamw-foreach, adamw-fused, sgd"),
        ({"n_head": 3}, "n_embd 16 is not a multiple of n_head 3"),
        ({"dropout": 1.0}, "dropout 1.0"),
        ({"batch": -1}, "batch -1 is not above 0"),
        ({"grad_clip": -1.0}, "grad_clip -1.0 is negative"),
        ({"block_size": 10**6}, "block_size 1000000 is not below"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        build(**settings)


def test_bfloat16_autocast():
    training = build(bf16=True)
    x, y = next(training.batches)
    logits = training.forward((x, y))
    assert logits.dtype is torch.bfloat16
    assert training.loss(logits, (x, y)).dtype is torch.float32
    assert all(p.dtype is torch.float32 for p in training.model.parameters())
