"""nanoGPT and DLRM in every configuration, recorded on sim and on the CPU: each operator that needs a kernel passes.

All of them: pytest -m "sweep or not sweep" tests/enable/test_matrix.py
"""

import itertools
import json

import pytest

from enable.cli import run

NANOGPT = ["nanogpt", "--batch", "2"]
NANOGPT += [w for s in ("n_layer=1", "n_embd=16", "n_head=2", "block_size=8") for w in ("--set", s)]
DLRM = ["dlrm", "--batch", "8"]
DLRM += [w for s in ("tables=2", "rows=50", "lookups=3", "dim=8") for w in ("--set", s)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """One for all configurations: what two of them ask alike is judged once."""
    return tmp_path_factory.mktemp("matrix")


@pytest.fixture
def covered(workspace, capfd):
    """A function that records a step of a model and returns its compute overloads that do not pass."""

    def call(name, *words):
        capfd.readouterr()
        assert run(["--workspace", str(workspace), "capture", *words, "--name", name]) == 0
        capfd.readouterr()
        assert run(["--workspace", str(workspace), "coverage", name, "--json"]) == 0
        found = json.loads(capfd.readouterr().out)
        assert found["overloads"]["compute"] > 15
        needed = [row for row in found["rows"] if row["kind"] in ("compute", "random")]
        return {row["overload"]: row["detail"] for row in needed if row["outcome"] != "PASS"}

    return call


def configurations(sample, **choices):
    """All combinations. CI runs one of each model; test_nanogpt.py has every optimizer in float32."""
    every = itertools.product(*choices.values())
    return [pytest.param(*values, marks=[] if values in sample else [pytest.mark.sweep]) for values in every]


@pytest.mark.parametrize(
    ("device", "dropout", "dtype", "optimizer"),
    configurations(
        {("sim", "0.2", "f16", "adamw-fused")},
        device=("sim", "cpu"),
        dropout=("0.0", "0.2"),
        dtype=("f32", "bf16", "f16"),
        optimizer=("adamw", "adamw-foreach", "adamw-fused", "sgd"),
    ),
)
def test_nanogpt(covered, device, dropout, dtype, optimizer):
    words = [*NANOGPT, "--device", device, "--optimizer", optimizer, "--set", f"dropout={dropout}"]
    words += [] if dtype == "f32" else ["--set", f"{dtype}=true"]
    assert covered(f"nanogpt-{device}-{dropout}-{dtype}-{optimizer}", *words) == {}


@pytest.mark.parametrize(
    ("device", "sparse", "optimizer"),
    configurations(
        {("sim", "true", "rowwise-adagrad")},
        device=("sim", "cpu"),
        sparse=("true", "false"),
        optimizer=("sgd", "adagrad", "rowwise-adagrad"),
    ),
)
def test_dlrm(covered, device, sparse, optimizer):
    words = [*DLRM, "--device", device, "--optimizer", optimizer, "--set", f"sparse={sparse}"]
    assert covered(f"dlrm-{device}-{sparse}-{optimizer}", *words) == {}


LACKS = """\
base: sim
lint:
  base: triton
  forbidden: [scatter-store]
  blocks: [without_erf, without_float64, without_atomics]
  remove:
    dtypes: [float64, complex32, complex64, complex128]
    kernel:
      names:
        - tl.float64
        - tl.erf
        - tl.math.erf
        - tl.sort
        - tl.histogram
        - tl.associative_scan
        - tl.atomic_add
        - tl.atomic_max
        - tl.atomic_min
        - tl.atomic_cas
      annotations: [fp64, tl.float64]
"""


@pytest.mark.sweep
@pytest.mark.parametrize("model", [NANOGPT, DLRM], ids=["nanogpt", "dlrm"])
def test_a_chip_with_the_usual_lacks(model, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lacks.yaml").write_text(LACKS)
    assert run(["capture", *model, "--name", "step"]) == 0
    capfd.readouterr()
    assert run(["coverage", "step", "--platform", "./lacks.yaml", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["overloads"]["covered"] == found["overloads"]["compute"] > 15
