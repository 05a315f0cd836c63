import math

import pytest
import torch
import torch.nn.functional as F

from models import hstu

SMALL = {"rows": 50, "dim": 4, "max_length": 5, "negatives": 6, "batch": 8}
OFFSETS = torch.tensor([0, 3, 3, 4, 9, 9])  # users of 3, 0, 1, 5 and 0 events


def build(**settings):
    return hstu.build(hstu.Config(**{**SMALL, **settings}))


def with_biases(model):
    """Its biases are 0 at first, where an error in them would not be seen."""
    for layer in model.layers:
        torch.nn.init.normal_(layer.by_distance)
        torch.nn.init.normal_(layer.by_time)
    return model


def jagged(model, generator=None):
    """Events of the users of OFFSETS, and random items."""
    items, following = torch.randint(50, (2, 9), generator=generator)
    times = torch.tensor([7, 8, 1000, 5, 0, 0, 1, 70, 5000])
    return OFFSETS, items, times, following, torch.randint(50, (6,), generator=generator)


def test_jagged_to_padded_and_back():
    values = torch.rand(9, 2, 3, requires_grad=True)
    places = hstu.Places.of(OFFSETS, 9, 6)
    padded = places.pad(values)
    assert padded.shape == (5, 6, 2, 3)
    for user in range(5):
        own = values[OFFSETS[user] : OFFSETS[user + 1]]
        assert torch.equal(padded[user, : len(own)], own)
        assert not padded[user, len(own) :].any()
    assert torch.equal(places.unpad(padded), values)
    weights = torch.rand(9, 2, 3)
    (places.unpad(padded) * weights).sum().backward()
    assert torch.equal(values.grad, weights)


def time_bucket(seconds):
    return 0 if seconds < 1 else 1 + int(math.log2(seconds))


def layer_by_hand(layer, x, times):
    """A layer on the events of one user, pair by pair: x [n, 4], times [n]."""
    n, size = len(x), 4 // layer.heads
    u, v, q, k = F.silu(layer.project(F.layer_norm(x, (4,)))).chunk(4, dim=1)
    rows = []
    for i in range(n):
        attended = torch.zeros(4)
        for h in range(layer.heads):
            part = slice(h * size, (h + 1) * size)
            for j in range(i + 1):
                bias = layer.by_distance[i - j] + layer.by_time[time_bucket(int(times[i] - times[j]))]
                score = torch.dot(q[i, part], k[j, part]) + bias
                attended[part] = attended[part] + score * torch.sigmoid(score) / n * v[j, part]
        rows.append(x[i] + layer.output(F.layer_norm(attended, (4,)) * u[i]))
    return torch.stack(rows)


def test_attention_is_the_sum_over_what_came_before():
    model = with_biases(build(heads=2).model)
    offsets, _, times, _, _ = jagged(model)
    x, places = torch.rand(9, 4), hstu.Places.of(OFFSETS, 9, 5)
    found = model.layers[0](x, places, *model.relate(places.pad(times), offsets))
    for user in (0, 2, 3):
        own = slice(OFFSETS[user], OFFSETS[user + 1])
        torch.testing.assert_close(found[own], layer_by_hand(model.layers[0], x[own], times[own]))


def test_logits_are_cosines_with_the_next_item_first():
    model = with_biases(build(temperature=0.5).model)
    offsets, items, times, following, negatives = jagged(model)
    negatives[2] = following[4]  # no negative to what follows event 4
    logits = model(offsets, items, times, following, negatives)
    assert logits.shape == (9, 1 + 6)
    table = model.items.weight
    for user in (0, 2, 3):
        own = slice(OFFSETS[user], OFFSETS[user + 1])
        x = table[items[own]]
        for layer in model.layers:
            x = layer_by_hand(layer, x, times[own])
        for event, vector in zip(range(9)[own], x, strict=True):
            candidates = torch.tensor([following[event], *negatives])
            cosines = F.cosine_similarity(vector, table[candidates], dim=1) / 0.5
            cosines[1:][negatives == following[event]] = -math.inf
            torch.testing.assert_close(logits[event], cosines, rtol=1e-4, atol=1e-5)
    assert logits[4, 3] == -math.inf


def test_users_and_later_events_have_no_influence():
    model = with_biases(build().model)
    batch = jagged(model)
    logits = model(*batch)
    items = batch[1].clone()
    items[6] = (items[6] + 1) % 50  # the third event of the fourth user
    changed = model(OFFSETS, items, *batch[2:])
    same = (logits == changed).all(dim=1)
    assert same.tolist() == [True] * 6 + [False] * 3


def test_gradients_of_biases_are_the_same_to_the_bit_on_two_threads():
    index = torch.randint(24, (128, 25, 25), generator=torch.Generator().manual_seed(1))
    places = torch.rand(index.shape, generator=torch.Generator().manual_seed(2))
    biases = torch.zeros(24, requires_grad=True)
    assert torch.equal(hstu.look_up(places.flatten(), index), places.flatten()[index])
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = [torch.autograd.grad((hstu.look_up(biases, index) * places).sum(), biases)[0] for _ in range(8)]
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(gradient, found[0]) for gradient in found)
    expected = torch.zeros(24, dtype=torch.float64).index_add(0, index.flatten(), places.flatten().double())
    torch.testing.assert_close(found[0], expected.float(), rtol=1e-4, atol=0.0)


def test_the_loss_is_the_softmax_of_the_next_item():
    training = build()
    batch = next(training.batches)
    logits = training.forward(batch)
    expected = -(logits[:, 0] - logits.exp().sum(dim=1).log()).mean()
    torch.testing.assert_close(training.loss(logits, batch), expected)


def test_every_parameter_has_a_gradient():
    training = build()
    batch = next(training.batches)
    training.loss(training.forward(batch), batch).backward()
    lacking = [name for name, p in training.model.named_parameters() if p.grad is None]
    assert not lacking
    assert training.model.layers[0].by_time.grad.any()
    assert training.model.layers[1].by_distance.grad.any()


def test_a_batch_holds_the_latest_events_that_another_follows():
    users = [(torch.arange(n), torch.arange(n) * 10) for n in (3, 1, 7, 0)]
    offsets, items, times, following, negatives = next(hstu.collate(iter([users]), hstu.Config(max_length=4, rows=9)))
    assert offsets.tolist() == [0, 2, 2, 6, 6]
    assert items.tolist() == [0, 1, 2, 3, 4, 5]
    assert times.tolist() == [0, 10, 20, 30, 40, 50]
    assert following.tolist() == [1, 2, 3, 4, 5, 6]
    assert (negatives.shape, negatives.max() < 9) == ((128,), True)


def test_generated_users_differ_in_length():
    batch = next(build(rows=1000, max_length=40, batch=500).batches)
    offsets, items, times, following, _ = batch
    assert {part.dtype for part in batch} == {torch.int64}
    lengths = offsets.diff()
    assert (int(lengths.min()), int(lengths.max())) == (1, 40)
    assert 5 < lengths.double().median() < 12  # uniform in the logarithm
    assert len(items) == len(times) == len(following) == offsets[-1]
    assert (times.diff() >= 1).all()
    counts = torch.bincount(items, minlength=1000).sort(descending=True).values.double()
    assert counts[0] / counts[9] == pytest.approx(10**1.05, rel=0.3)


def test_a_line_of_a_criteo_file_is_a_user(criteo):
    path = criteo(
        {"categories": ["", "a", "0", "b", "a", *[""] * 21]},
        {"categories": [""] * 26},
        {"categories": [f"{i:x}" for i in range(1, 27)]},
        {"categories": ["a", *[""] * 25]},
    )
    training = build(data=path, rows=10_000, batch=4, max_length=25)
    offsets, items, times, following, _ = batch = next(training.batches)
    assert offsets.tolist() == [0, 2, 2, 27, 27]
    assert items[:2].tolist() == [10 * 26 + 1, 11 * 26 + 3]
    assert following[:2].tolist() == [11 * 26 + 3, 10 * 26 + 4]  # a value of another column is another item
    assert times[:2].tolist() == [1, 3]
    assert items[2:].tolist() == [(i + 1) * 26 + i for i in range(25)]
    assert math.isfinite(training.step(batch).item())


def test_lines_without_a_next_item_are_refused(criteo):
    line = {"categories": ["a", *[""] * 25]}
    training = build(data=criteo(line, line), batch=2)
    with pytest.raises(ValueError, match="day.tsv: none of 2 lines has two categories; no item follows another$"):
        next(training.batches)


BAD = {
    "no layer": ({"layers": 0}, "layers 0 is not above 0"),
    "no head": ({"heads": 0}, "heads 0 is not above 0"),
    "no event": ({"max_length": 0}, "max_length 0 is not above 0"),
    "no negative": ({"negatives": 0}, "negatives 0 is not above 0"),
    "temperature": ({"temperature": 0.0}, "temperature 0.0 is not above 0"),
    "heads that do not divide": ({"heads": 3}, "dim 32 is not a multiple of heads 3"),
    "one bucket": ({"time_buckets": 1}, "time_buckets 1 is not from 2 to 64"),
    "buckets beyond int64": ({"time_buckets": 65}, "time_buckets 65 is not from 2 to 64"),
}


@pytest.mark.parametrize(("settings", "message"), BAD.values(), ids=BAD.keys())
def test_bad_settings_are_one_line(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        hstu.Config(**settings)


def test_as_many_buckets_as_int64_has():
    model = build(time_buckets=64).model
    assert model.boundaries[-1] == 1 << 62
