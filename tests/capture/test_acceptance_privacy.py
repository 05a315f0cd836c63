"""Acceptance tests 18 and 19: traces without user bytes, and traces in BackendBench's forms."""

import pytest
import torch
import torch.nn.functional as F

from capture import Recorder
from enable.cli import run
from traces import Trace, verify
from traces.exchange.grammar import read_arguments
from traces.exchange.layout import TensorSpec
from traces.values import unpack
from verify.cases.case import NoReference, case_of, reference

ROWS, CLASSES = 500, 40


def step(recorder):
    """A training step on hashed ids of users, tokens, measurements and labels; returns what is the users' own."""
    torch.manual_seed(0)
    table, layer = torch.nn.Embedding(ROWS, 16), torch.nn.Linear(24, CLASSES)
    users = torch.randint(1 << 40, 1 << 62, (128,))
    measured, labels = torch.randn(128, 8) * 3 + 10, torch.randint(CLASSES, (128,))
    tokens, order = users % ROWS, torch.randperm(128)
    with recorder:
        hidden = torch.cat([table(users % ROWS), measured], dim=1)[order]
        F.cross_entropy(layer(hidden), labels).backward()
    return {
        "users": users, "tokens": tokens, "order": order, "labels": labels, "measured": measured,
        "table": table.weight.detach(), "weight": layer.weight.detach(),
        "gradient": layer.weight.grad,
    }  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The traces by values, and the users' own tensors."""
    directory = tmp_path_factory.mktemp("privacy")
    paths = {values: directory / f"{values}.trace" for values in ("full", "seeded", "stats")}
    own = [step(Recorder(path, values=values)) for values, path in paths.items()]
    assert all(torch.equal(own[0][name], own[1][name]) for name in own[0])
    return {values: Trace.open(path) for values, path in paths.items()}, own[0]


def windows(data, size):
    """Every `size` bytes in a row, but for those that are zeros but for two, as of any small number of 64 bits."""
    found = {data[i : i + size] for i in range(len(data) - size + 1)}
    return {window for window in found if window.count(0) < size - 2}


def forms(t):
    """Bytes of a tensor, and how many tell something: 8, or 4 small integers in any width they may be packed in."""
    if t.is_floating_point() or int(t.max()) >= 1 << 32:
        return [(t.numpy().tobytes(), 8)]
    widths = [width for width in (1, 2, 4, 8) if int(t.max()) < 1 << 8 * width - 1]
    return [(t.numpy().astype(f"<i{width}").tobytes(), max(8, 4 * width)) for width in widths]


def found_in(trace, own):
    """Names of the users' tensors of which a window lies in some file of the trace."""
    files = [path.read_bytes() for path in trace.path.iterdir()]
    known = {size: set().union(*(windows(data, size) for data in files)) for size in (8, 16, 32)}
    return {name for name, t in own.items() for data, size in forms(t) if windows(data, size) & known[size]}


def test_18_no_user_bytes(recorded, capsys):
    traces, own = recorded
    assert found_in(traces["full"], own) == {"users", "tokens", "order", "labels", "measured", "table", "weight"}
    for values in ("seeded", "stats"):
        assert found_in(traces[values], own) == set()
        assert run(["trace", "audit", str(traces[values].path), "--against", str(traces["full"].path)]) == 0
        assert "no user bytes found" in capsys.readouterr().out
    assert run(["trace", "audit", str(traces["full"].path)]) == 1


def arguments(trace, overload):
    """Of the first stored call."""
    return unpack(trace.packed(next(r for r in trace.calls() if r.overload == f"aten::{overload}")))


def test_18_what_is_drawn_is_in_range_and_alike(recorded, capsys):
    """Statistics are kept to 2 significant digits: a tenth of a mean or a deviation may be lost."""
    traces, own = recorded
    trace = traces["seeded"]
    embedding, index, loss = (arguments(trace, name) for name in ("embedding", "index.Tensor", "nll_loss_forward"))
    for drawn, given, end in (
        (embedding["indices"], own["tokens"], ROWS),
        (index["indices"][0], own["order"], 128),
        (loss["target"], own["labels"], CLASSES),
    ):
        assert not torch.equal(drawn, given)
        assert drawn.min() >= 0 and drawn.max() < end
        assert sorted(drawn.unique(return_counts=True)[1]) == sorted(given.unique(return_counts=True)[1])
    joined = arguments(trace, "cat")["tensors"][1]
    for drawn, given in ((embedding["weight"], own["table"]), (joined, own["measured"])):
        assert drawn.shape == given.shape
        assert abs(drawn.mean() - given.mean()) < 0.1 * given.std() + 0.1 * abs(given.mean())
        assert abs(drawn.std() / given.std() - 1) < 0.15
        assert given.min() <= drawn.min() and drawn.max() <= given.max()
    report = verify(trace)
    assert not report.mismatches and not report.exact and report.synthesised > 15
    assert run(["trace", "verify", str(trace.path)]) == 0
    assert "0 stored calls bit-exact" in capsys.readouterr().out


def test_18_statistics_alone_are_never_a_pass(recorded):
    traces, _ = recorded
    report = verify(traces["stats"])
    assert report.exact == report.synthesised == 0
    with_values = [r for r in traces["stats"].calls() if any(r.contents)]
    assert report.not_recorded == len(with_values) > 10
    for record in with_values:
        with pytest.raises(NoReference, match="values not recorded"):
            reference(case_of(traces["stats"], record))


FORMS = {"backendbench-txt": "txt", "backendbench-parquet": "parquet"}


@pytest.mark.parametrize("form", FORMS)
def test_19_export_and_import_by_the_commands(recorded, tmp_path, capsys, form):
    if form.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet")
    trace = recorded[0]["full"]
    names = {text: str(tmp_path / text) for text in (f"a.{FORMS[form]}", "b.trace", "b.txt", "a.txt")}
    exported = names[f"a.{FORMS[form]}"]
    assert run(["trace", "export", str(trace.path), "--format", form, "--out", exported]) == 0
    assert "lost" in capsys.readouterr().out
    assert run(["trace", "import", exported, "--format", form, "--out", names["b.trace"]]) == 0
    for path, out in ((str(trace.path), names["a.txt"]), (names["b.trace"], names["b.txt"])):
        assert run(["trace", "export", path, "--format", "backendbench-txt", "--out", out, "--force"]) == 0
    text = (tmp_path / "a.txt").read_text()
    assert text == (tmp_path / "b.txt").read_text()
    report = verify(Trace.open(names["b.trace"]))
    assert report.passed and report.synthesised > 15
    counts = {line.partition("Operator: aten.")[2] for line in text.splitlines() if line.startswith("Operator")}
    recorded_names = {s.overload.removeprefix("aten::") for s in trace.signatures.values()}
    assert {name.removesuffix(".default") for name in counts} == recorded_names
    line = text.partition("Operator: aten.nll_loss_forward.default\n")[2].splitlines()[0]
    (scores, labels, *rest), named = read_arguments(line.partition(", ")[2])
    assert scores == TensorSpec((128, CLASSES), (CLASSES, 1), torch.float32)
    assert labels == TensorSpec((128,), (1,), torch.int64)
    assert (rest, named) == ([None, 1, -100], {})


@pytest.mark.parametrize("form", FORMS)
def test_19_a_payload_is_refused_and_not_run(tmp_path, capsys, form):
    flag = tmp_path / "flag"
    payload = f"((__import__('pathlib').Path({str(flag)!r}).touch(),), {{}})"
    path = tmp_path / f"a.{FORMS[form]}"
    if form == "backendbench-txt":
        path.write_text(f"Operator: aten.relu.default\ncnt: 1, ((T([2], f32),), {{}})\ncnt: 1, {payload}\n")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        rows = {"op_name": ["aten.relu.default"] * 2, "args": ["((T([2], f32),), {})", payload], "count": [1, 1]}
        parquet.write_table(arrow.table(rows), path)
    out = tmp_path / "a.trace"
    assert run(["trace", "import", str(path), "--format", form, "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line.startswith(f"enable: {path}:{3 if form == 'backendbench-txt' else 2}: ") and "nothing was imported" in line
    )
    assert not flag.exists() and not out.exists()
