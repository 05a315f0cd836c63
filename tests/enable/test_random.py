"""Random numbers drawn by the library's kernels: reproducible, comparable with the CPU, and counted."""

import json

import pytest
import torch
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

from capture import Recorder
from enable import library
from enable.train.rounding import Truncating

SETTINGS = {"n_layer": "1", "n_embd": "16", "n_head": "2", "block_size": "8", "dropout": "0.2"}
SMALL = ["nanogpt", "--batch", "2", "--optimizer", "sgd", "--unverified", "--steps", "2", "--json"]
SMALL += [w for name, value in SETTINGS.items() for w in ("--set", f"{name}={value}")]


def test_nanogpt_with_dropout_trains_as_the_cpu_does_and_twice_alike(enable):
    status, out, err = enable("run", *SMALL, "--compare")
    compared = json.loads(out)
    assert status == 0 and compared["passed"] and compared["fallbacks"] == {}, err
    assert compared["served"]["aten::native_dropout"]["calls"] == 8
    assert compared["served"]["aten::native_dropout_backward"]["calls"] == 8
    assert compared["not_compared"] is None
    again = json.loads(enable("run", *SMALL)[1])
    assert again["loss"] == compared["loss"] and again["gradient_norm"] == compared["gradient_norm"]


FACTORY = """
import torch

def step(device="cpu"):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5)).to(device)
    loss = lambda model, batch: model(batch).square().sum()
    return model, torch.ones(3, 4).to(device), loss, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
"""


def test_verdicts_on_what_the_device_draws_with_are_enough_to_compare(enable, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dropped.py").write_text(FACTORY)
    for words in (("capture", "dropped:step", "--device", "sim"), ("coverage", "dropped-step")):
        status, _, err = enable(*words)
        assert status == 0, err
    status, out, err = enable("run", "dropped:step", "--steps", "2", "--compare", "--json")  # the CPU calls bernoulli_
    compared = json.loads(out)
    assert status == 0 and compared["passed"] and "aten::native_dropout" in compared["served"], err


def on_cpu(*ops):
    return library.use("cpu", ops=ops, unverified=True)


def test_the_noise_of_a_comparison_is_no_kernels():
    with on_cpu("aten::rand", "aten::rand.generator") as registration, Truncating(0):
        assert 0 < (torch.full((50,), 3.0).neg() + 3).max() < 1e-6
        assert -torch.tensor(3.0) + 3 > 0
    assert not registration.counts.served


@pytest.mark.parametrize(
    "overload, work",
    [
        ("aten::bernoulli_.float", lambda g: torch.empty(40, 30).bernoulli_(0.3, generator=g)),
        ("aten::bernoulli", lambda g: torch.bernoulli(torch.full((999,), 0.5), generator=g)),
        ("aten::uniform_", lambda g: torch.empty(1200).uniform_(-1, 1, generator=g)),
        ("aten::normal_", lambda g: torch.empty(30, 40).t().normal_(generator=g)),
        ("aten::rand", lambda g: torch.rand(1200)),
        ("aten::rand.generator", lambda g: torch.rand(1200, generator=g)),
        ("aten::randn_like", lambda g: torch.randn_like(torch.empty(1200))),
        ("aten::native_dropout", lambda g: torch.native_dropout(torch.ones(1200), 0.5, True)[0]),
    ],
)
def test_the_calls_generator_decides(overload, work):
    takes_it = overload not in ("aten::rand", "aten::randn_like", "aten::native_dropout")
    with on_cpu(overload) as registration:
        own = torch.Generator().manual_seed(6) if takes_it else None

        def drawn(seed):
            (own.manual_seed if own else torch.manual_seed)(seed)
            return work(own), work(own)

        (first, second), (again, _), (other, _) = drawn(6), drawn(6), drawn(7)
    assert torch.equal(first, again) and not torch.equal(first, second) and not torch.equal(first, other)
    assert registration.counts.served[overload] == 6 and not registration.counts.unserved


@pytest.mark.parametrize(
    "overload, work",
    [
        ("aten::randint", lambda: torch.randint(9, (5,))),
        ("aten::randint.low", lambda: torch.randint(2, 9, (5,))),
        ("aten::randperm", lambda: torch.randperm(5)),
        ("aten::tril_indices", lambda: torch.tril_indices(3, 4)),
        ("aten::triu_indices", lambda: torch.triu_indices(3, 4)),
    ],
)
def test_a_dtype_that_nobody_names_is_the_schemas(overload, work):
    """Which has a number for it, and the dispatcher hands nothing over that is the default."""
    with on_cpu(overload) as registration:
        made = work()
    assert registration.counts.served[overload] == 1
    expected = work()
    assert (made.dtype, made.shape) == (torch.int64, expected.shape)
    assert "rand" in overload or torch.equal(made, expected)


def test_a_saved_state_gives_the_same_draws():
    with on_cpu("aten::bernoulli_.float"):
        torch.manual_seed(1)
        with torch.random.fork_rng():
            inside = torch.empty(500).bernoulli_(0.5)
        assert torch.equal(inside, torch.empty(500).bernoulli_(0.5))


def test_checkpointing_drops_the_same_again():
    with library.use("sim", unverified=True, ops=None):
        torch.manual_seed(2)
        x = torch.ones(600).to("sim").requires_grad_()
        y = checkpoint(lambda t: dropout(t, 0.4) * 1.0, x, use_reentrant=False)
        y.backward(torch.ones(600).to("sim"))
    kept = y.detach().cpu()
    assert 250 < int((kept > 0).sum()) < 470
    torch.testing.assert_close(x.grad.cpu(), kept)


def test_draws_by_a_law_are_covered_and_others_are_named(enable, tmp_path):
    with Recorder(tmp_path / "draws.trace") as recorder:
        x = torch.randn(40, 50)
        dropout(x, 0.25)
        torch.binomial(x.abs(), x.sigmoid())
        recorder.step()
    status, out, err = enable("coverage", tmp_path / "draws.trace", "--json")
    rows = {row["overload"]: row for row in json.loads(out)["rows"]}
    drawn = rows["aten::bernoulli_.float"]
    assert (drawn["kind"], drawn["outcome"], drawn["cases"]) == ("random", "PASS", 1), err
    assert drawn["kernel"] == "generate/kernels/random/bernoulli.py" and rows["aten::randn"]["outcome"] == "PASS"
    assert rows["aten::binomial"]["outcome"] is None and "no law" in rows["aten::binomial"]["detail"]
    compute = {o for o, row in rows.items() if row["kind"] == "compute"}
    assert json.loads(out)["overloads"]["compute"] == len(compute | {"aten::bernoulli_.float", "aten::randn"})
