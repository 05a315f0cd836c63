"""`enable trace show`, `export`, `import` and `diff` as a user types them."""

import json
import shlex
import shutil
import sys

import program
import pytest
import torch
from warm import python

from capture import Recorder
from enable.cli import run


def enable(*arguments, cwd):
    return program.enable("trace", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Holds net.trace, recorded of a small net, and killed.trace, the same as a killed process leaves it."""
    directory = tmp_path_factory.mktemp("show")
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    with Recorder(directory / "net.trace", model=model) as recorder:
        model(torch.ones(64, 8)).sum().backward()
        recorder.step()
        torch.zeros(2, 2).to_mkldnn().to_dense()
    shutil.copytree(directory / "net.trace", directory / "killed.trace")
    killed = directory / "killed.trace"
    manifest = json.loads((killed / "manifest.json").read_text())
    (killed / "manifest.json").write_text(json.dumps({**manifest, "state": "open"}))
    (killed / "signatures.json").unlink()
    lines = (killed / "calls-00000.jsonl").read_bytes()
    (killed / "calls-00000.jsonl").write_bytes(lines[:-7])
    return directory


def test_show_at_a_glance(directory):
    found = enable("show", "net.trace", cwd=directory)
    assert found.returncode == 0, found.stderr
    for text in ("aten::addmm", "backward", "values ", " full", "unsupported", "mkldnn tensor", "overloads, "):
        assert text in found.stdout, text
    assert found.stdout.count("\n") < 60


def test_show_json(directory):
    found = json.loads(enable("show", "net.trace", "--json", cwd=directory).stdout)
    assert found["complete"] and found["damage"] == []
    assert sum(found["levels"].values()) == found["stored"] == sum(m["stored"] for m in found["modules"].values())
    assert sum(p["calls"] for p in found["phases"].values()) == found["calls"] == sum(r["calls"] for r in found["rows"])
    assert found["modules"]["0"]["bytes"] > 0
    (bin_,) = found["histogram"]["aten::addmm"]
    assert bin_ == {"from": 1024, "to": 4096, "stored": 1}  # 64 x 8 + 8 x 4 + 4 floats
    assert found["histogram"]["aten::t"][0]["from"] == 0
    assert {reason.rpartition(": ")[2] for reason in found["unsupported"]} == {"mkldnn tensor"}
    assert sum(r["bytes"] for r in found["rows"]) == found["input_bytes"]


@pytest.mark.parametrize(
    "view, words", [("op", "overload"), ("phase", "phase"), ("module", "module"), ("bytes", "percent")]
)
def test_show_one_table(directory, view, words):
    found = enable("show", "net.trace", "--by", view, cwd=directory)
    assert found.returncode == 0 and words in found.stdout.splitlines()[0]


def test_show_histogram(directory):
    assert "1.0 KiB to 4.0 KiB" in enable("show", "net.trace", "--histogram", cwd=directory).stdout


def test_unfinished_traces_are_shown_and_verified(directory):
    whole = json.loads(enable("show", "net.trace", "--json", cwd=directory).stdout)
    shown = enable("show", "killed.trace", cwd=directory)
    assert shown.returncode == 0 and "UNFINISHED" in shown.stdout and "torn" in shown.stdout
    verified = enable("verify", "killed.trace", cwd=directory)
    survived = f"{whole['stored'] - 1} stored calls survived"
    assert verified.returncode == 0 and survived in verified.stdout, verified.stdout + verified.stderr
    assert json.loads(enable("verify", "killed.trace", "--json", cwd=directory).stdout)["complete"] is False


def test_export_import_export_and_diff(directory, tmp_path):
    assert enable("export", directory / "net.trace", "--format", "backendbench-txt", cwd=tmp_path).returncode == 0
    imported = enable("import", "net.txt", "--format", "backendbench-txt", cwd=tmp_path)
    assert imported.returncode == 0 and "lost" in imported.stdout, imported.stderr
    again = enable("export", "net", "--format", "backendbench-txt", "--out", "again.txt", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.txt").read_text() == (tmp_path / "net.txt").read_text()
    same = enable("diff", "net", ".enable/traces/net.trace", cwd=tmp_path)
    assert same.returncode == 0 and "0 new, 0 gone, 0 changed" in same.stdout and "torch 2" in same.stdout
    differs = enable("diff", directory / "net.trace", "net", "--json", cwd=tmp_path)
    assert differs.returncode == 1
    found = json.loads(differs.stdout)
    assert not found["equal"] and {c["overload"] for c in found["gone"]} == {"aten::_to_dense"}
    assert found["settings"]["imported"] == [None, "backendbench-txt"]


def test_export_one_call_as_a_script(directory, tmp_path):
    made = enable(
        "export", directory / "net.trace", "--format", "repro", "--op", "aten::addmm", "--out", "r", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    typed = shlex.split(made.stdout.splitlines()[-1])
    assert typed[0] == "next"
    assert typed[1] == sys.executable
    found = python(*typed[2:], cwd=tmp_path)
    assert found.returncode == 0 and "float32[64, 4], bit-exact" in found.stdout


BAD = {
    "unknown view": (["show", "net.trace", "--by", "size"], ["size", "op, phase, module, bytes"]),
    "unknown export": (["export", "net.trace", "--format", "csv"], ["csv", "backendbench-txt", "repro"]),
    "unknown import": (["import", "x.txt", "--format", "csv"], ["csv", "chakra"]),
    "no file": (["import", "x.txt", "--format", "backendbench-txt"], ["x.txt"]),
    "no json": (["import", "net.trace", "--format", "chakra"], ["net.trace"]),
    "no call named": (["export", "net.trace", "--format", "repro"], ["--call", "--op"]),
    "no such call": (["export", "net.trace", "--format", "repro", "--call", "9999"], ["9999", "enable trace show"]),
    "no such overload": (["export", "net.trace", "--format", "backendbench-txt", "--op", "aten::no"], ["aten::no"]),
    "it exists": (["export", "net.trace", "--format", "backendbench-txt", "--out", "net.trace"], ["exists", "--out"]),
    "unfinished": (["diff", "net.trace", "killed.trace"], ["killed.trace", "did not finish"]),
    "no trace": (["diff", "net.trace", "nowhere"], ["nowhere"]),
}


@pytest.mark.parametrize("arguments, words", BAD.values(), ids=BAD.keys())
def test_bad_input(directory, arguments, words):
    found = enable(*arguments, cwd=directory)
    assert found.returncode == 2 and found.stdout == "", found.stdout
    assert found.stderr.startswith("enable: ") and found.stderr.count("\n") == 1, found.stderr
    assert all(word in found.stderr for word in words), found.stderr


@pytest.mark.parametrize("command", [["trace", "show"], ["coverage"]])
def test_a_trace_that_asks_for_no_kernel_says_so(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    with Recorder(tmp_path / "views.trace"):
        torch.empty(4).view(2, 2).t()
    assert run([*command, "views.trace"]) == 0
    out = capsys.readouterr().out
    assert "no operator of this trace needs a kernel" in out and "100" not in out
    assert run([*command, "views.trace", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    if command == ["coverage"]:
        assert found["overloads"] == {"compute": 0, "with_kernel": 0, "covered": 0, "percent": None}
        assert found["calls"] == {"total": 0, "covered": 0, "percent": None}
    else:
        assert found["computing"] == 0


def test_what_ended_the_steps_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for name, marked in (("marked", True), ("unmarked", False)):
        with Recorder(f"{name}.trace") as recorder:
            for _ in range(2):
                layer(torch.ones(1, 2)).sum().backward()
                optimizer.step()
                if marked:
                    recorder.step()
        assert run(["trace", "show", f"{name}.trace"]) == 0
        told = "recorder.step()" if marked else "an optimizer's step: recorder.step() was never called"
        assert f"steps        2, each ended by {told}\n" in capsys.readouterr().out


@pytest.fixture
def traces(tmp_path, monkeypatch, capsys):
    """A workspace with two traces: of x * x over a transposed tensor and a batch, and one that was killed."""
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.SiLU(), torch.nn.Linear(4, 4), torch.nn.SiLU())
    for name in ("net", "killed"):
        recorder = Recorder(f".enable/traces/{name}.trace", model=model, info={"model": "net", "device": "cpu"})
        with recorder, torch.no_grad():
            model(torch.ones(64, 8))
            model(torch.ones(8, 32).t()[:, :8])
    manifest = tmp_path / ".enable" / "traces" / "killed.trace" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "state": "open"}))

    def typed(*words):
        status = run([*words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return typed


def test_list_of_traces(traces):
    status, out, _ = traces("trace", "list")
    assert status == 0 and "killed: its recording did not finish" in out
    found = json.loads(traces("trace", "list", "--json")[1])["traces"]
    assert [(row["trace"], row["model"], row["complete"]) for row in found] == [
        ("killed", "net", False),
        ("net", "net", True),
    ]
    assert found[1]["calls"] > found[1]["stored"] - 1 > 0 and found[1]["bytes"] > 0
    assert (
        "no traces in nowhere/traces; what can be recorded: enable models"
        in traces("trace", "list", "--workspace", "nowhere")[1]
    )


def test_signatures_of_an_operator(traces):
    status, out, _ = traces("trace", "show", "net", "--op", "silu")
    assert status == 0 and out.startswith("aten::silu: 4 calls of 2 signatures, 2 stored\n")
    found = json.loads(traces("trace", "show", "net", "--op", "addmm", "--json")[1])["signatures"]
    strided = next(row for row in found if row["arguments"]["mat1"]["stride"] == [1, 32])
    assert strided["arguments"]["mat1"] == {"dtype": "float32", "shape": [32, 8], "stride": [1, 32]}
    assert strided["arguments"]["alpha"] == 1 and strided["calls"] == sum(strided["phases"].values()) == 1
    (stored,) = strided["stored"]
    assert (
        stored["module"] == "0"
        and f"call {stored['id']} in 0 (full)" in traces("trace", "show", "net", "--op", "aten::addmm")[1]
    )


def test_which_call_a_script_is_of(traces):
    found = json.loads(traces("trace", "show", "net", "--op", "silu", "--json")[1])["signatures"]
    first, second = sorted(row["stored"][0]["id"] for row in found)
    _, out, _ = traces("trace", "export", "net", "--format", "repro", "--op", "silu", "--out", "a")
    assert out.startswith(f"call {first} of aten::silu, values full, in a\n")
    assert f"the first of 2 stored calls; another with --call ID: {second}\n" in out
    words = ("trace", "export", "net", "--format", "repro", "--op", "silu", "--call", str(second), "--out", "b")
    assert traces(*words)[1].startswith(f"call {second} of aten::silu, values full, in b\n  next  ")
    status, _, err = traces(*words[:-4], "--call", "0", "--out", "c")
    assert status == 2 and err == "enable: net holds no call 0 of silu; see: enable trace show net --op silu\n"


@pytest.mark.parametrize(
    "words, said",
    [
        (("--op", "sil"), "holds no call of sil (near it: aten::silu); see: enable trace show net"),
        (("--op", "silu", "--by", "op"), "leave out --by and --histogram"),
    ],
)
def test_bad_operators(traces, words, said):
    status, out, err = traces("trace", "show", "net", *words)
    assert status == 2 and not out and said in err and err.count("\n") == 1
