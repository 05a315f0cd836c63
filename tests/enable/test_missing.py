"""`enable coverage --missing`, `--compile-only`, and what a call is estimated to cost."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from shared import without
from torch import nn

from capture import Recorder
from enable.cli import run
from enable.cover.cost import BANDWIDTH, LAUNCH, RATE, cost_of
from enable.cover.coverage import Row
from enable.cover.matrix import Matrix, Need
from traces.store import Trace

LIBRARY = Path(__file__).parents[2] / "generate" / "kernels"


class Net(nn.Module):
    """Calls what has no kernel: a convolution of many operations, mish of many bytes, and celu often."""

    def __init__(self):
        super().__init__()
        self.conv, self.mish = nn.Conv2d(192, 192, 3, padding=1, bias=False), nn.Mish()
        self.one, self.two = nn.CELU(), nn.CELU()

    def forward(self, image, large, small):
        self.conv(image)
        self.mish(large)
        self.one(small)
        self.two(self.two(small[:2]))


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory):
    """The packaged kernels but for those of three operators."""
    with pytest.MonkeyPatch.context() as patch:
        place = without([CONV, MISH, CELU], tmp_path_factory.mktemp("library") / "kernels")
        patch.setenv("ENABLE_LIBRARY", str(place))
        yield place


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    place = tmp_path_factory.mktemp("missing") / ".enable"
    model, x = Net(), torch.ones(4)
    inputs = torch.ones(1, 192, 64, 64), torch.ones(1 << 21), x
    with Recorder(place / "traces" / "net.trace", model=model, info={"model": "net"}), torch.no_grad():
        model(*inputs)
    with Recorder(place / "traces" / "other.trace", info={"model": "net"}):
        torch.celu(x)
    with Recorder(place / "traces" / "two.trace", info={"model": "two"}):
        x.neg(), x.exp(), torch.celu(x)
    return str(place)


@pytest.fixture
def typed(workspace, capsys):
    def type_(*words):
        status = run(["--workspace", workspace, "coverage", *words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return type_


CONV, MISH, CELU = "aten::convolution", "aten::mish", "aten::celu"


@pytest.mark.parametrize(
    "by, order",
    [
        ((), [CONV, MISH, CELU]),
        (("--by", "calls"), [CELU, MISH, CONV]),
        (("--by", "bytes"), [MISH, CONV, CELU]),
        (("--by", "modules"), [CELU, MISH, CONV]),
    ],
)
def test_what_is_missing_is_ranked(typed, by, order):
    status, out, _ = typed("net", "--missing", *by, "--json")
    rows = {row["overload"]: row for row in json.loads(out)["missing"]}
    assert status == 0 and list(rows) == order
    assert {row["state"] for row in rows.values()} == {"no kernel"}
    assert rows[CELU]["calls"] == 3 and rows[CELU]["modules"] == ["one", "two"]
    assert rows[CONV]["flops"] == 2 * 192 * 192 * 9 * 64 * 64 and rows[MISH]["flops"] == 0
    assert rows[MISH]["bytes"] == 2 * 4 << 21
    assert sum(row["percent"] for row in rows.values()) == pytest.approx(100, abs=0.2)


def test_the_list_as_text(typed, workspace):
    status, out, _ = typed("net", "--missing")
    lines = out.splitlines()
    assert status == 0 and lines[0].split() == ["overload", "state", "calls", "bytes", "time", "%", "modules"]
    assert lines[1].startswith("aten::convolution  no kernel      1") and lines[1].endswith("1: conv")
    assert "3 of 3 overloads are missing, 5 of 5 calls, 100.0 % of the estimated time" in out
    assert "moving its bytes at 1 TB/s, its operations at 100 TFLOP/s, a launch of 5 us" in out
    assert lines[-1].endswith(f"enable --workspace {workspace} refine net --op aten::convolution --llm manual")


def test_no_kernel_is_not_called_skipped(typed):
    _, out, _ = typed("net", "--json")
    for row in json.loads(out)["rows"]:
        if row["overload"] in (CONV, MISH, CELU):
            assert (row["kernel"], row["outcome"], row["state"]) == (None, None, "no kernel")
    _, out, _ = typed("net")
    assert "no kernel" in out and "SKIPPED" not in out and "coverage net --missing" in out


def test_how_many_overloads_have_a_kernel_and_which_trace_it_is_of(typed, workspace):
    told = json.loads(typed("other", "--json")[1])["overloads"]
    assert told == {"compute": 1, "with_kernel": 0, "covered": 0, "percent": 0.0}
    assert "\nother (net) on sim\n" in typed("other")[1] and "\nnet on sim\n" in typed("net")[1]


def test_a_plan_names_the_trace_that_it_is_about(workspace, capsys):
    assert run(["--workspace", workspace, "generate", "--query", "lacking in other", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  trace +other$", out, re.MULTILINE) and "opinfo" not in out and "aten::celu" in out


def test_a_workspace_that_is_read_only_shows_what_is_kept(typed, workspace, monkeypatch):
    """The superuser may write anywhere, so that is said of the directory which only a file system can hold to."""
    kept = typed("two")[1]
    before = {p: p.stat().st_mtime_ns for p in Path(workspace).rglob("*")}

    def access(path, mode, may=os.access, **options):
        return may(path, mode, **options) and not (mode == os.W_OK and str(path).startswith(workspace))

    monkeypatch.setattr("os.access", access)
    status, out, err = typed("two")
    assert status == 0 and out == kept and "PASS" in kept, err
    assert f"enable: {workspace} is read-only: new verdicts are not kept" in err
    assert {p: p.stat().st_mtime_ns for p in Path(workspace).rglob("*")} == before


def test_what_compiles_for_a_chip_that_is_not_here(typed, tmp_path):
    (tmp_path / "pointwise").mkdir()
    for name in ("neg", "exp"):
        shutil.copy(LIBRARY / "pointwise" / f"{name}.py", tmp_path / "pointwise")
    broken = tmp_path / "pointwise" / "neg.py"
    broken.write_text(broken.read_text().replace("x * -1.0", "x.nope"))
    words = ("two", "--compile-only", "--platform", "hip", "--library", str(tmp_path))
    status, out, _ = typed(*words, "--json")
    found = json.loads(out)
    states = {row["overload"]: row["state"] for row in found["rows"]}
    assert status == 0 and found["targets"] == ["hip:gfx942"]
    assert states["aten::exp"] == "compiles" and states["aten::neg"] == "COMPILE_ERROR", found
    assert states[CELU] == "no kernel"
    assert found["overloads"] == {"compute": 3, "compiles": 1, "percent": 33.3}
    text = typed(*words)[1]
    assert "two for hip:gfx942: compiled, not run" in text and "PASS" not in text


@pytest.mark.parametrize(
    "by, order",
    [((), [CELU, CONV, MISH]), (("--by", "bytes"), [MISH, CONV, CELU]), (("--by", "calls"), [CELU, CONV, MISH])],
)
def test_several_traces_are_a_matrix(typed, by, order):
    """Of an overload by trace: what most of them lack leads, then what takes longest."""
    status, out, _ = typed("net", "two", "other", *by, "--json")
    found = json.loads(out)
    rows = {row["overload"]: row for row in found["rows"]}
    assert status == 0 and list(rows)[:3] == order and set(list(rows)[3:]) == {"aten::neg", "aten::exp"}
    assert rows[CELU]["lacking"] == list(rows[CELU]["models"]) == ["net", "two", "other"]
    assert rows[CELU]["calls"] == 5 and rows[CELU]["models"]["net"]["calls"] == 3
    assert rows[MISH]["lacking"] == ["net"] and rows["aten::neg"]["lacking"] == []
    assert sum(row["percent"] for row in rows.values()) == pytest.approx(100, abs=0.3)
    assert {row["name"]: row["overloads"]["percent"] for row in found["models"]} == {"net": 0, "two": 66.7, "other": 0}
    assert found["overloads"] == {"compute": 5, "covered": 2, "percent": 40.0}
    assert list(json.loads(typed("net", "two", "other", *by, "--missing", "--json")[1])["rows"]) == found["rows"][:3]


def test_what_is_for_cpus_alone_is_lacking_nowhere_and_yet_not_covered():
    row = Row("aten::mkldnn_rnn_layer", "compute", 1, 1, 0, None, None, "no kernel")
    found = Matrix({}, (Need(row.overload, {"a": row}, {}),))
    assert row.of_cpus and not found.missing
    assert found.overloads == {"compute": 1, "covered": 0, "percent": 0.0}


def test_the_matrix_as_text(typed, workspace):
    status, out, _ = typed("net", "two")
    lines = out.splitlines()
    assert status == 0 and lines[0].split() == ["overload", "lacking", "calls", "time", "%", "net", "two"]
    assert lines[1].startswith("aten::celu") and lines[1].endswith("no kernel  no kernel")
    assert re.search(r"^aten::exp +0 +1 +[\d.]+ +- +PASS, 1 case$", out, re.MULTILINE)
    assert "two: 2 of 3 overloads (66.7 %), 2 of 3 calls (66.7 %)" in out
    assert "together on sim: 2 of 5 overloads (40.0 %)" in out
    assert lines[-1].endswith(f"enable --workspace {workspace} refine net --op aten::celu --llm manual")
    assert "aten::exp" not in typed("net", "two", "--missing")[1]


@pytest.mark.parametrize(
    "words, said",
    [
        (("--missing", "--by", "size"), "--by 'size': --missing is ranked by time, calls, bytes, modules"),
        (("--by", "calls"), "--missing is ranked by"),
        (("--compile-only", "--missing"), "leave out --missing"),
        (("two", "--by", "modules"), "a matrix of 2 traces is ranked by models, time, calls, bytes"),
        (("two", "--exhaustive"), "--compile-only, --exhaustive and --of look at one trace"),
        (("two", "net"), "net is named twice; name each trace once: net two"),
        (("two", "three"), "no trace"),
    ],
)
def test_options_that_do_not_go_together(typed, words, said):
    status, out, err = typed("net", *words)
    assert status == 2 and not out and said in err and err.count("\n") == 1


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_what_sparse_results_cost(tmp_path):
    """Of a sparse result what its parts are: two indices of int64 and a float for each of three elements."""
    with Recorder(tmp_path / "t.trace"):
        torch.eye(3).to_sparse()
    (record,) = (r for r in Trace.open(tmp_path / "t.trace").calls() if "to_sparse" in r.overload)
    assert cost_of(record).nbytes == 9 * 4 + 3 * (2 * 8 + 4)


def test_what_a_call_costs(tmp_path):
    q, a, b = torch.ones(1, 2, 16, 8), torch.ones(256, 1024), torch.ones(1024, 512)
    with Recorder(tmp_path / "t.trace", info={}):
        a.mm(b)
        nn.functional.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True)
        q.add_(q)
    costs = {r.overload: cost_of(r) for r in Trace.open(tmp_path / "t.trace").calls() if r.kind == "compute"}
    product = costs["aten::mm"]
    assert product.flops == 2 * 256 * 512 * 1024 and product.nbytes == 4 * (256 * 1024 + 1024 * 512 + 256 * 512)
    assert product.seconds == max(product.flops / RATE, product.nbytes / BANDWIDTH, LAUNCH)
    assert costs["aten::add_.Tensor"].nbytes == 3 * q.nbytes  # read twice, written once
    attention = costs["aten::_scaled_dot_product_flash_attention_for_cpu"]
    assert attention.flops == 2 * 2 * (2 * 16 * 16 * 8)  # of each head two products
