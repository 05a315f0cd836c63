import math

import pytest
import torch

from models import dlrm

SMALL = {"tables": 3, "rows": 50, "dim": 4, "lookups": 2, "batch": 8}


def build(**settings):
    return dlrm.build(dlrm.Config(**{**SMALL, **settings}))


def criteo_line(label="1", dense=None, categories=None):
    return "\t".join([label, *(dense or ["5"] * 13), *(categories or ["68fd1e64"] * 26)])


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


def test_tables_sum_their_lookups_and_have_sparse_gradients():
    training = build()
    dense, offsets, indices, _ = batch = next(training.batches)
    table = training.model.tables[1]
    torch.testing.assert_close(table(indices[1], offsets[1])[3], table.weight[indices[1, 6:8]].sum(0))
    training.loss(training.forward(batch), batch).backward()
    assert table.weight.grad.is_sparse


@pytest.mark.parametrize(("optimizer", "lr"), [("sgd", 0.1), ("adagrad", 0.01)])
def test_it_learns(optimizer, lr):
    training = build(optimizer=optimizer, lr=lr)
    batch = next(training.batches)
    losses = [training.step(batch).item() for _ in range(15)]
    assert losses[-1] < losses[0] - 0.01


def test_generated_indices_follow_zipfs_law():
    _, _, indices, label = next(build(rows=1000, lookups=1000, batch=64, tables=2).batches)
    counts = torch.bincount(indices[0], minlength=1000).sort(descending=True).values.double()
    assert indices.min() >= 0
    assert indices.max() < 1000
    assert counts[0] / counts[9] == pytest.approx(10**1.05, rel=0.15)
    assert set(label.unique().tolist()) == {0.0, 1.0}
    assert torch.bincount(indices[0]).argmax() != torch.bincount(indices[1]).argmax()


def test_a_criteo_file(tmp_path):
    dense = ["", "-2", "0", "7", *["1"] * 9]
    lines = [criteo_line("1", dense, ["", "ff", *["68fd1e64"] * 24]), criteo_line("0"), criteo_line("1")]
    (tmp_path / "day.tsv").write_text("\n".join(lines) + "\n")
    training = dlrm.build(dlrm.Config(data=str(tmp_path / "day.tsv"), rows=100, batch=2))
    x, offsets, indices, label = next(training.batches)
    assert (x.shape, offsets.shape, indices.shape) == ((2, 13), (26, 2), (26, 2))
    assert x[0, :4].tolist() == pytest.approx([0.0, 0.0, 0.0, math.log(8)])  # missing and negative count as 0
    assert indices[:3, 0].tolist() == [0, 0xFF % 100, 0x68FD1E64 % 100]
    assert label.tolist() == [[1.0], [0.0]]
    assert next(training.batches)[3].tolist() == [[1.0], [1.0]]  # goes on, and starts again at the end
    training.step((x, offsets, indices, label))


BAD_LINES = {
    "columns": ("1\t2", "line 2: has 2 columns, Criteo data has 40"),
    "label": (criteo_line("yes"), "line 2, column 1: 'yes' is not a label"),
    "dense": (criteo_line(dense=["1"] * 12 + ["1.5"]), "line 2, column 14: '1.5' is not a decimal"),
    "category": (criteo_line(categories=["xyz"] + ["1"] * 25), "line 2, column 15: 'xyz' is not a hexadecimal"),
    "huge": (criteo_line(categories=["f" * 5000] + ["1"] * 25), "line 2, column 15"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_bad_lines_name_line_and_column(tmp_path, line, message):
    (tmp_path / "day.tsv").write_text(f"{criteo_line()}\n{line}\n")
    training = dlrm.build(dlrm.Config(data=str(tmp_path / "day.tsv"), rows=100, batch=2))
    with pytest.raises(ValueError, match=f"day.tsv: {message}") as error:
        next(training.batches)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is empty"), (b"\xff\xfe", "cannot be read"), (None, "cannot be read")]
)
def test_bad_files(tmp_path, content, message):
    if content is not None:
        (tmp_path / "day.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        next(dlrm.build(dlrm.Config(data=str(tmp_path / "day.tsv"), rows=100)).batches)


def test_a_file_has_26_tables():
    with pytest.raises(ValueError, match="tables 3 does not fit"):
        dlrm.Config(tables=3, data="day.tsv")
