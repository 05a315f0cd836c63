"""`enable fuse` as a user types it, and the files that it leaves."""

import json

import pytest
import torch

from capture import Recorder
from enable.cli import run
from enable.subgraphs import Fusion, fused_cases
from enable.workspace import Workspace
from traces import TraceError
from traces.values import unpack
from verify.cases.case import reference


@pytest.fixture
def enable(tmp_path, capsys, monkeypatch):
    """A function that runs the program and returns its status, what it printed, and what it said."""
    monkeypatch.chdir(tmp_path)

    def typed(*words):
        status = run(["--workspace", str(tmp_path / "ws"), *words])
        out, err = capsys.readouterr()
        return status, out, err

    return typed


@pytest.fixture
def record(tmp_path):
    def recorded(program, name="small", **how):
        with Recorder(tmp_path / "ws" / "traces" / f"{name}.trace", **{"dataflow": True, **how}):
            program()

    (tmp_path / "ws" / "traces").mkdir(parents=True)
    return recorded


def chains(sizes=((4, 8), (3, 5), (4, 8))):
    torch.manual_seed(0)
    for n, m in sizes:
        ((torch.randn(n, m).to(torch.bfloat16) * 2).exp() @ torch.ones(m, 3, dtype=torch.bfloat16)).sum()


def test_found_kept_and_listed(enable, record, tmp_path):
    record(chains)
    status, out, _ = enable("fuse", "small", "--json")
    assert status == 0
    (found,) = [f for f in json.loads(out)["fusions"] if f["kind"] == "pointwise"]
    assert found["steps"] == ["aten::_to_copy", "aten::mul.Tensor", "aten::exp"]
    assert found["uses"] == 3 and found["shapes"] == [[[4, 8]], [[3, 5]]]
    assert found["launches"] == 6 and found["kernel"] == "none" and found["traces"] == ["small"]
    path = tmp_path / "ws" / "fusions" / f"{found['overload'].removeprefix('fused::')}.json"
    assert path.stat().st_size < 10_000 and Fusion.load(path).overload == found["overload"]
    assert enable("fuse", "--list", "--json")[1] == out
    listed = enable("fuse", "--list")[1]
    assert found["overload"] in listed and "launches saved" in listed


def test_cases_hold_what_was_recorded(enable, record, tmp_path):
    record(chains)
    assert enable("fuse", "small")[0] == 0
    workspace = Workspace(tmp_path / "ws")
    fusions = workspace.fusions()
    fusion = next(f for f in fusions.values() if f.kind == "pointwise")
    cases = fused_cases(fusions.values(), workspace.open_trace("small"), "small")[fusion.overload]
    assert len(cases) == 3 and len({c.signature for c in cases}) == 2
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    (a0,) = unpack(cases[0].load()).values()
    assert torch.equal(a0, x)
    expected = reference(cases[0])
    assert expected.values.tensors[-1].dtype == "float64"  # what lies between is not rounded there
    made = unpack(expected.values)["return"]
    torch.testing.assert_close(made, (x.double() * 2).exp())


def test_traces_are_kept_beside_each_other(enable, record):
    record(chains)
    record(lambda: chains(((2, 2),)), name="other")
    enable("fuse", "small")
    found = json.loads(enable("fuse", "other", "--json")[1])["fusions"]
    (chain,) = [f for f in found if f["kind"] == "pointwise"]
    assert chain["traces"] == ["other", "small"] and chain["uses"] == 4
    assert json.loads(enable("fuse", "other", "--json")[1])["fusions"] == found  # and again no more than that


def test_what_a_trace_holds_no_more_is_forgotten(enable, record, tmp_path):
    record(chains)
    enable("fuse", "small")
    with Recorder(tmp_path / "ws" / "traces" / "small.trace", force=True, dataflow=True):
        alive = torch.ones(3).sin().cos()
    assert enable("fuse", "small")[0] == 0
    del alive
    (found,) = json.loads(enable("fuse", "--list", "--json")[1])["fusions"]
    assert found["steps"] == ["aten::sin", "aten::cos"]


def test_what_can_be_fused_of_what_has_no_kernel_is_found_too(enable, record):
    """Attention launches itself; what turns its queries is done element by element."""
    q, s = torch.randn(1, 2, 8, 4), torch.randn(8, 4)
    kept = []
    attention = torch.nn.functional.scaled_dot_product_attention
    record(lambda: kept.append(attention(q * s + q.neg() * s, q, q)))
    found = json.loads(enable("fuse", "small", "--compose", "--json")[1])
    whole, part = sorted(found["fusions"], key=lambda f: -len(f["steps"]))
    assert (whole["kind"], whole["kernel"]) == ("attention", "none") and list(found["not_composed"]) == [
        whole["overload"]
    ]
    assert (part["kind"], part["kernel"]) == ("pointwise", "made") and set(part["steps"]) < set(whole["steps"])
    assert {f["overload"] for f in json.loads(enable("fuse", "small", "--json")[1])["fusions"]} == {
        whole["overload"],
        part["overload"],
    }


def test_kernels_are_composed_and_judged(enable, record, tmp_path):
    kept = []
    record(lambda: kept.extend(torch.randn(n, m).mul(2).sin() for n, m in ((4, 8), (3, 5))))
    status, out, _ = enable("fuse", "small")
    assert status == 0 and out.endswith("fuse small --compose --verify\n")
    status, out, _ = enable("fuse", "small", "--compose", "--verify")
    assert status == 0 and " verified " in out and "next" not in out
    (path,) = (tmp_path / "ws" / "kernels" / "fused").glob("*.py")
    path.write_text(path.read_text().replace("return (v1,)", "return (v1 + 1,)"))
    assert enable("fuse", "--list")[1].endswith("fuse --list --verify\n")
    status, out, _ = enable("fuse", "small", "--verify")
    again = next(line for line in out.split("\n") if line.startswith("  again  "))
    assert status == 1 and "WRONG" in out
    words = again.split(" verify ")[1].split()
    assert words[0] == f"fused::{path.stem}" and enable("verify", *words)[0] == 1
    assert json.loads(enable("fuse", "small", "--verify", "--json")[1])["refused"] == [f"fused::{path.stem}"]


@pytest.mark.parametrize(
    ("program", "how", "words", "told"),
    [
        (chains, {"dataflow": False}, ["small"], "holds no dataflow; record it: enable capture MODEL --dataflow"),
        (chains, {"values": "stats"}, ["small"], "no contents to judge fused kernels on (values: stats); record them"),
        (chains, {}, ["smal"], "did you mean small?"),
        (chains, {}, ["small", "--op", "gelu"], "small calls no aten::gelu; it calls"),
        (lambda: torch.ones(3).sum(), {}, ["small"], "no subgraph of its"),
        (lambda: torch.ones(3).mul_(2), {}, ["small", "--op", "mul_.Tensor"], "writes an argument"),
        (lambda: torch.rand(3).bernoulli(), {}, ["small", "--op", "bernoulli"], "draws random numbers"),
        (lambda: torch.nonzero(torch.ones(3)), {}, ["small", "--op", "nonzero"], "decides by data how large"),
        (chains, {}, [], "name a TRACE that was captured with --dataflow"),
    ],
)
def test_bad_input_is_told_in_a_line(enable, record, program, how, words, told):
    record(program, **how)
    status, out, err = enable("fuse", *words)
    assert status == 2 and told in err and err.count("\n") == 1 and not out


def test_why(enable, record):
    record(lambda: torch.nonzero(torch.ones(3)))
    status, out, _ = enable("fuse", "small", "--why")
    assert status == 0 and "aten::nonzero decides by data how large its result is" in out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 7}, "is format 7, this toolkit reads 1"),
        ({"overload": "fused::other_00000000"}, "its name says another"),
        ({"uses": [{"trace": "small"}]}, "not a fusion"),
        ({"subgraph": {}}, "not a subgraph"),
    ],
)
def test_damaged_files_are_named(enable, record, tmp_path, change, told):
    record(chains)
    enable("fuse", "small")
    path = sorted((tmp_path / "ws" / "fusions").iterdir())[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(TraceError, match=told) as error:
        Fusion.load(path)
    assert path.name in str(error.value)
    status, _, err = enable("fuse", "--list")
    assert status == 2 and told in err


def test_a_list_of_a_trace_that_cannot_be_searched_is_refused(enable, record, tmp_path):
    record(chains)
    assert enable("fuse", "small", "--list")[1].endswith("fuse small\n")  # the next command, which is not refused
    with Recorder(tmp_path / "ws" / "traces" / "plain.trace"):
        torch.ones(3).sin().cos()
    for trace, told in (("nope", "nope"), ("plain", "holds no dataflow; record it: ")):
        for options in ((), ("--json",)):
            status, out, err = enable("fuse", trace, "--list", *options)
            assert (status, out) == (2, "") and told in err


def test_a_trace_recorded_anew_is_noticed(enable, record, tmp_path):
    record(chains)
    enable("fuse", "small")
    with Recorder(tmp_path / "ws" / "traces" / "small.trace", force=True, dataflow=True):
        torch.ones(3).sin().cos()
        torch.ones(9).sin().cos()
    workspace = Workspace(tmp_path / "ws")
    with pytest.raises(TraceError, match="recorded anew since|is not stored here"):
        fused_cases(workspace.fusions().values(), workspace.open_trace("small"), "small")


@pytest.mark.parametrize("words", [["verify"], ["refine", "small", "--op"]])
def test_a_fusion_that_is_not_there(enable, record, words):
    record(chains)
    status, _, err = enable(*words, "fused::nope_12345678")
    assert status == 2 and "no fusion fused::nope_12345678 here" in err and "enable fuse MODEL" in err


def test_a_fusion_without_a_kernel(enable, record):
    record(chains)
    (name, *_) = [f["overload"] for f in json.loads(enable("fuse", "small", "--json")[1])["fusions"]]
    status, _, err = enable("verify", name)
    assert status == 2 and f"refine --op {name}" in err
