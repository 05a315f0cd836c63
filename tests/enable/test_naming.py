"""Short names of operators stand for the full ones, in every command that takes one."""

import json
from pathlib import Path

import pytest
import torch
from shared import sampled, without

from capture import Recorder
from enable.cli import run
from enable.cover.finding import finding_lines
from enable.naming import full, means, near
from verify.judging.stages import TrialResult
from verify.outcome import Outcome


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a command beside a workspace with a trace of celu, which has no kernel, and silu."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENABLE_LIBRARY", str(without(["aten::celu", "aten::abs"], tmp_path / "library")))
    x = torch.ones(3)
    with Recorder(".enable/traces/net.trace", info={"model": "net"}):
        torch.celu(x), torch.nn.functional.silu(x)

    def type_(*words):
        status = run([*words])
        told = capsys.readouterr()
        return status, told.out + told.err

    return type_


SAME = [
    ("library history {}", "gelu"),
    ("library show {}", "add.Tensor"),
    ("library rollback {}", "gelu"),
    ("refine net --op {} --restart --llm manual --json", "celu"),
    ("refine net --op {}", "abs"),
    ("dialog show {}", "exp"),
    ("dialog record {} --out x.jsonl", "exp"),
    ("export D --op {}", "gelu"),
    ("trace show net --op {}", "silu"),
    ("trace export net --format repro --op {} --out /nowhere/r", "abs"),
    ("verify {}", "celu"),
]


ALIKE = ("library show", "library rollback")  # as the command before them


@pytest.mark.parametrize(
    "words, name",
    sampled(SAME, [row for row in SAME if not row[0].startswith(ALIKE)]),
    ids=[words.partition("{")[0] for words, _ in SAME],
)
def test_a_short_name_says_what_the_full_one_does(typed, words, name):
    told = [typed(*words.format(word).split()) for word in (f"aten::{name}", name)]
    texts = [text.replace(f"aten::{name}", name).replace("run-002", "run-001") for _, text in told]
    assert texts[0] == texts[1] and told[0][0] == told[1][0], told


def test_short_names_of_dialogs(typed):
    assert typed("refine", "net", "--op", "celu", "--llm", "manual")[0] == 0
    Path("answer.md").write_text("No.")
    assert typed("dialog", "answer", "celu", "answer.md")[0] == 0
    assert typed("dialog", "show", "celu")[1].startswith("aten::celu, run-001: ")


def test_short_names_in_what_is_recorded(typed, tmp_path):
    small = [w for s in ("n_layer=1", "n_embd=16", "n_head=2", "block_size=8") for w in ("--set", s)]
    status, text = typed("capture", "nanogpt", *small, "--ops", "gelu", "--ops", "*layer_norm", "--json")
    assert status == 0, text
    found = json.loads(typed("trace", "show", "nanogpt", "--json")[1])
    assert {row["overload"] for row in found["rows"]} == {"aten::gelu", "aten::native_layer_norm"}


def test_names():
    assert full("silu") == full("aten::silu") == "aten::silu" and full("mine::op") == "mine::op"
    assert means("add", "aten::add.Tensor") and not means("add", "aten::add_.Tensor")
    assert near("layer_norm", ["aten::native_layer_norm", "aten::mm"]) == "aten::native_layer_norm"
    assert near("aten::sillu", ["aten::silu", "aten::mm"]) == "aten::silu" and near("xyz", ["aten::mm"]) == ""


def test_a_long_report_is_cut_in_the_middle():
    found = TrialResult("k.py", Outcome.COMPILE_ERROR, report="\n".join(map(str, range(500))))
    lines = finding_lines(found, ["enable", "verify", "k.py"]).split("\n")
    assert "    0" in lines and "    499" in lines and len(lines) < 70
    assert "    ... 440 more lines: --json" in lines
