import torch

from models import dlrm

SMALL = {"tables": 3, "rows": 50, "dim": 4, "lookups": 2, "batch": 8}


def build(**settings):
    return dlrm.build(dlrm.Config(**{**SMALL, **settings}))


def test_the_default_model_is_the_published_one():
    model = dlrm.build(dlrm.Config(rows=10)).model
    assert len(model.tables) == 26
    assert [layer.out_features for layer in model.bottom if hasattr(layer, "out_features")] == [512, 256, 64, 16]
    assert [layer.in_features for layer in model.top if hasattr(layer, "in_features")] == [16 + 27 * 26 // 2, 512, 256]
    assert isinstance(model.top[-1], torch.nn.Sigmoid)


def test_every_pair_of_vectors_is_multiplied_once():
    model = build().model
    x, pooled = torch.rand(2, 4), [torch.rand(2, 4) for _ in range(3)]
    vectors = [x, *pooled]
    pairs = [(vectors[i] * vectors[j]).sum(1) for i in range(4) for j in range(i)]
    torch.testing.assert_close(model.interact(x, pooled), torch.cat([x, torch.stack(pairs, dim=1)], dim=1))


def test_tables_sum_their_lookups():
    training = build()
    _, offsets, indices, _ = next(training.batches)
    table = training.model.tables[1]
    torch.testing.assert_close(table(indices[1], offsets[1])[3], table.weight[indices[1, 6:8]].sum(0))
