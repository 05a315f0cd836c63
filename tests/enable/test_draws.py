"""Random numbers of one training, given to another."""

from collections import Counter

import pytest
import torch
from torch.nn import functional as F

from capture import sim
from enable import library
from enable.train.draws import Draws, Incomparable
from enable.train.training_run import Recipe, compare_with_cpu, on_device

SETTINGS = {"n_layer": "1", "n_embd": "16", "n_head": "2", "block_size": "8", "dropout": "0.2"}


def recorded(work, served=None):
    draws = Draws()
    with draws.recording(Counter() if served is None else served):
        found = work()
    return draws, found


def replayed(draws, work):
    with draws.replayed() as around, around():
        return work()


def test_a_training_with_other_draws_is_compared_by_them():
    recipe = Recipe("nanogpt", SETTINGS, batch=2, optimizer="sgd", steps=2)
    draws = Draws()
    with sim.executing(sim.on_cpu):
        steps = list(on_device(recipe, "sim", lambda: draws.recording(Counter())))
    assert {d.operator for d in draws.taken} == {"native_dropout"} and len(draws.taken) == 2 * 4
    found = compare_with_cpu(recipe, draws.replayed)  # whose operators draw with bernoulli_
    assert all(found.agrees(i, step) for i, step in enumerate(steps))
    for draw in draws.taken:
        draw.values[0].logical_not_()
    found = compare_with_cpu(recipe, draws.replayed)
    assert not any(found.agrees(i, step) for i, step in enumerate(steps))


def test_what_is_drawn_outside_of_dropout_is_given_too():
    def work():
        return torch.randn(3, 4), torch.randperm(5), torch.empty(6).uniform_(), torch.rand_like(torch.empty(7))

    draws, first = recorded(work)
    for mine, theirs in zip(replayed(draws, work), first, strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("variant", ["efficient", "flash"])
def test_the_masks_of_attention_follow_from_its_seed_and_offset(variant):
    q, k, v = (torch.randn(2, 3, n, 8) for n in (5, 6, 6))
    overload = f"aten::_scaled_dot_product_{variant}_attention"
    middle = {"efficient": (None, True), "flash": ()}[variant]

    def fused():
        return getattr(torch.ops.aten, overload.removeprefix("aten::"))(q, k, v, *middle, 0.4)[0]

    def plain():
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.4)

    pair = [overload, f"{overload}_backward"]  # of which none is served alone where elements are dropped
    with library.use("cpu", ops=pair, unverified=True) as registration:
        draws, expected = recorded(fused, registration.counts.served)
    torch.testing.assert_close(replayed(draws, plain), expected)
    draws, _ = recorded(lambda: torch.ops.aten._scaled_dot_product_attention_math(q, k, v), Counter())
    assert not draws.taken and not draws.unseen  # nothing is dropped


@pytest.mark.parametrize(
    "theirs, mine, told",
    [
        (lambda: torch.rand(3), lambda: torch.rand(4), r"draws with rand \[4\] where the device does with rand \[3\]"),
        (lambda: torch.rand(3), lambda: torch.randn(3), "draws with randn .* where the device does with rand"),
        (lambda: torch.rand(3), lambda: None, "draws 0 times, the device 1"),
        (lambda: None, lambda: F.dropout(torch.ones(3)), "draws with bernoulli once more than the device"),
        (lambda: F.rrelu(torch.randn(9), training=True), lambda: None, "what aten::rrelu_with_noise.* cannot be seen"),
    ],
)
def test_trainings_that_do_not_draw_alike_are_not_compared(theirs, mine, told):
    draws, _ = recorded(theirs)
    with pytest.raises(Incomparable, match=told):
        replayed(draws, mine)
