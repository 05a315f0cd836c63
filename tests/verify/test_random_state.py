"""Keys and counters of calls."""

import pytest
import torch

from verify.contract.random_state import bound, draw


def test_the_cpus_generator_gives_a_key_each_time():
    torch.manual_seed(4)
    pairs = [draw(None, "cpu") for _ in range(100)]
    assert len({seed for seed, _ in pairs}) == 100
    assert all(0 <= seed < 1 << 63 and offset == 0 for seed, offset in pairs)
    torch.manual_seed(4)
    assert [draw(None, "cpu") for _ in range(100)] == pairs


def test_the_calls_generator_comes_first():
    own = torch.Generator().manual_seed(8)
    before = torch.get_rng_state()
    pair = draw(own, "cpu")
    assert torch.equal(before, torch.get_rng_state())
    assert draw(torch.Generator().manual_seed(8), "cpu") == pair != draw(own, "cpu")


def test_saved_and_restored_states_give_the_same_pairs():
    torch.manual_seed(4)
    with torch.random.fork_rng():
        inside = draw(None, "cpu")
    state = torch.get_rng_state()
    after = draw(None, "cpu")
    torch.set_rng_state(state)
    assert inside == after == draw(None, "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_generator_with_an_offset_gives_its_key_and_moves_on():
    torch.cuda.manual_seed((1 << 64) - 3)
    first, second = draw(None, "cuda"), draw(None, "cuda")
    assert first[0] == second[0] == -3 and second[1] == first[1] + 1
    state = torch.cuda.get_rng_state()
    torch.rand(100_000, device="cuda")  # ATen's own kernels move the same offset on
    third = draw(None, "cuda")
    assert third[1] > second[1] + 1
    torch.cuda.set_rng_state(state)
    assert draw(None, "cuda")[1] == second[1] + 1


def test_a_wrapper_gets_its_pair():
    def wrapper(x, *, philox):
        return x, philox

    assert bound(wrapper, [1, 2])(0) == (0, (1, 2))
    assert bound(wrapper, None) is wrapper
