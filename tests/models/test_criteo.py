"""Data, tables and optimizers, which the models of recommendations share; each test runs on all that it is true of."""

import math

import pytest
import torch

from models import criteo as shared
from models import dcn, dhen, dlrm, hstu

TABLES = {"tables": 3, "rows": 50, "dim": 4, "lookups": 2, "batch": 8}
SMALL = {dlrm: TABLES, dcn: TABLES, dhen: TABLES, hstu: {"rows": 50, "dim": 4, "max_length": 5, "batch": 8}}


def name(model):
    return model.__name__.partition(".")[2]


every_model = pytest.mark.parametrize("model", SMALL, ids=name)
every_model_of_clicks = pytest.mark.parametrize("model", [dlrm, dcn, dhen], ids=name)


def build(model, **settings):
    return model.build(model.Config(**{**SMALL[model], **settings}))


def tables(training):
    return [m for m in training.model.modules() if isinstance(m, torch.nn.Embedding | torch.nn.EmbeddingBag)]


def gradients(training, batch):
    training.loss(training.forward(batch), batch).backward()
    return [table.weight.grad for table in tables(training)]


@every_model
def test_gradients_of_tables_are_sparse_or_dense_as_asked_and_the_same(model):
    training, other = build(model), build(model, sparse=False)
    batch = next(training.batches)
    sparse, dense = gradients(training, batch), gradients(other, batch)
    assert all(gradient.is_sparse for gradient in sparse)
    assert not any(gradient.is_sparse for gradient in dense)
    for one, two in zip(sparse, dense, strict=True):
        torch.testing.assert_close(one.to_dense(), two)
        assert two.any()


@every_model
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("optimizer", shared.OPTIMIZERS)
def test_it_learns(model, optimizer, sparse):
    training = build(model, optimizer=optimizer, sparse=sparse, lr=0.1 if optimizer == "sgd" else 0.01)
    batch = next(training.batches)
    losses = [training.step(batch).item() for _ in range(15)]
    assert losses[-1] < losses[0] - 0.01


@every_model
def test_rowwise_adagrad_keeps_one_number_a_row_of_tables_alone(model):
    training = build(model, optimizer="rowwise-adagrad")
    training.step(next(training.batches))
    kept = training.optimizer.state
    weights = {table.weight for table in tables(training)}
    assert {kept[p]["sum"].shape for p in weights} == {(50,)}
    assert all(kept[p]["sum"].shape == p.shape for p in set(training.model.parameters()) - weights)
    assert kept.keys() == set(training.model.parameters())


@every_model
def test_the_seed_decides_everything(model):
    def losses(seed):
        training = build(model, seed=seed)
        return [training.step(next(training.batches)).item() for _ in range(3)]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


@every_model
def test_a_step_at_batch_1024(model):
    training = model.build(model.Config(rows=1000, batch=1024, optimizer="rowwise-adagrad"))
    batch = next(training.batches)
    before = [table.weight.clone() for table in tables(training)]
    assert math.isfinite(training.step(batch).item())
    assert all((table.weight != old).any() for table, old in zip(tables(training), before, strict=True))


def test_generated_indices_follow_zipfs_law():
    _, _, indices, label = next(shared.generate(shared.Settings(rows=1000, lookups=1000, batch=64, tables=2)))
    counts = torch.bincount(indices[0], minlength=1000).sort(descending=True).values.double()
    assert indices.min() >= 0
    assert indices.max() < 1000
    assert counts[0] / counts[9] == pytest.approx(10**1.05, rel=0.15)
    assert set(label.unique().tolist()) == {0.0, 1.0}
    assert torch.bincount(indices[0]).argmax() != torch.bincount(indices[1]).argmax()


@every_model_of_clicks
def test_a_criteo_file(model, criteo):
    dense = ["", "-2", "0", "7", *["1"] * 9]
    path = criteo({"dense": dense, "categories": ["", "ff", *["68fd1e64"] * 24]}, {"label": "0"}, {})
    training = model.build(model.Config(data=path, rows=100, batch=2))
    x, offsets, indices, label = next(training.batches)
    assert (x.shape, offsets.shape, indices.shape) == ((2, 13), (26, 2), (26, 2))
    assert x[0, :4].tolist() == pytest.approx([0.0, 0.0, 0.0, math.log(8)])  # missing and negative count as 0
    assert indices[:3, 0].tolist() == [0, 0xFF % 100, 0x68FD1E64 % 100]
    assert label.tolist() == [[1.0], [0.0]]
    assert next(training.batches)[3].tolist() == [[1.0], [1.0]]  # goes on, and starts again at the end
    training.step((x, offsets, indices, label))


BAD_LINES = {
    "columns": ("1\t2", "line 2: has 2 columns, Criteo data has 40"),
    "label": ({"label": "yes"}, "line 2, column 1: 'yes' is not a label"),
    "dense": ({"dense": ["1"] * 12 + ["1.5"]}, "line 2, column 14: '1.5' is not a decimal"),
    "category": ({"categories": ["xyz"] + ["1"] * 25}, "line 2, column 15: 'xyz' is not a hexadecimal"),
    "huge": ({"categories": ["f" * 5000] + ["1"] * 25}, "line 2, column 15"),
}


@every_model
@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_bad_lines_name_line_and_column(model, criteo, line, message):
    training = model.build(model.Config(data=criteo({}, line), rows=100, batch=2))
    with pytest.raises(ValueError, match=f"day.tsv: {message}") as error:
        next(training.batches)
    assert len(str(error.value)) < 300


@every_model
@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"\xff\xfe", "cannot be read"), (None, "cannot be read")]
)
def test_bad_files(model, tmp_path, content, message):
    if content is not None:
        (tmp_path / "day.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        next(model.build(model.Config(data=str(tmp_path / "day.tsv"), rows=100)).batches)


@every_model_of_clicks
def test_a_file_has_26_tables(model):
    with pytest.raises(ValueError, match="tables 3 does not fit data day.tsv, which has 26 categories"):
        model.Config(tables=3, data="day.tsv")


@every_model
@pytest.mark.parametrize("setting", ["rows", "dim", "batch", "lr"])
def test_sizes_are_above_0(model, setting):
    with pytest.raises(ValueError, match=f"^{setting} 0 is not above 0$"):
        model.Config(**{setting: 0})


@every_model
def test_optimizers_have_names(model):
    with pytest.raises(ValueError, match="^optimizer 'adam' is not one of: sgd, adagrad, rowwise-adagrad$"):
        model.Config(optimizer="adam")
