"""`enable dialog` as a user types it, over journals of real runs of the manual provider and of the openai one."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from warm import python

from enable.cli import run as enable
from generate.dialog import open_journal, refine_operator
from generate.llm import Options, load_provider
from generate.task import Task
from verify.outcome import Outcome, Verdict

GOOD = (Path(__file__).parents[2] / "generate" / "examples" / "exp.py").read_text()
TASK = Task("aten::exp", ("aten::exp(Tensor self) -> Tensor",), ("float32",), "x.py", command="enable refine")
RIGHT = f"Here it is.\n```python\n{GOOD}```"
WRONG = RIGHT.replace("tl.exp", "tl.log")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hold(model, dialogs=".enable/dialogs", task=TASK, restart=False):
    def tester(source):
        wrong = "tl.log(" in source
        return [Verdict("c", Outcome.WRONG if wrong else Outcome.PASS, "", "1.5 for 2.5" if wrong else "")]

    journal = open_journal(Path(dialogs), task, restart=restart)
    try:
        return refine_operator(task, model, tester, journal)
    finally:
        journal.close()


def manual(**where):
    return hold(load_provider("manual"), **where)


def listed(capsys):
    assert enable(["dialog", "list", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["runs"]


def refused(capsys, *words):
    """Exit status 2 and one line on stderr."""
    assert enable(["dialog", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


def test_a_run_by_hand_from_the_first_prompt_to_the_end(home, capsys, monkeypatch):
    manual()
    (row,) = listed(capsys)
    assert (row["overload"], row["stage"], row["calls"], row["turn"]) == ("aten::exp", "GENERATE", 0, "yours")
    assert "001-prompt.md, then: enable dialog answer aten::exp FILE" in row["detail"]
    (home / "answer.md").write_text(WRONG)
    assert enable(["dialog", "answer", "aten::exp", "answer.md"]) == 0
    assert capsys.readouterr().out.endswith("001-answer.md written\n  next  enable refine\n")
    (row,) = listed(capsys)
    assert (row["turn"], row["detail"]) == ("stopped", "to go on: enable refine")
    assert "no run of aten::exp waits" in refused(capsys, "answer", "aten::exp", "answer.md")

    manual()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert "is empty; write one to a file, or to stdin with -" in refused(capsys, "answer", "aten::exp", "-")
    command = [sys.executable, "-m", "enable", "dialog", "answer", "aten::exp", "-"]
    subprocess.run(command, input=RIGHT, text=True, check=True, capture_output=True, env=environment())
    assert manual().passed
    (row,) = listed(capsys)
    assert (row["stage"], row["calls"], row["turn"], row["detail"]) == ("PASSED", 2, "-", "")
    assert row["tokens"] > 1000


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def test_the_table_of_runs(endpoint, capsys):
    assert enable(["dialog", "list"]) == 0
    assert capsys.readouterr().out == "no dialogs yet; to hold some, see: enable refine --help\n"
    endpoint.replies = [WRONG, 401]
    model = load_provider("openai", Options(model="m"))
    hold(model)
    hold(load_provider("manual"), restart=True)
    assert enable(["dialog", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["overload", "run", "stage", "dialog", "calls", "tokens", "turn"]
    assert lines[1].split() == ["aten::exp", "run-001", "ABORTED", "1", "1", "1200", "-"], "a later run goes on"
    assert lines[2].split() == ["aten::exp", "run-002", "GENERATE", "1", "0", "0", "yours"]


def test_an_aborted_run_says_why_and_one_at_work_is_running(endpoint, capsys):
    endpoint.replies = [WRONG, 401]
    hold(load_provider("openai", Options(model="m")))
    (row,) = listed(capsys)
    assert row["turn"] == "stopped"
    assert "the key was refused" in row["detail"]
    assert row["detail"].endswith("; to go on: enable refine")
    journal = open_journal(Path(".enable/dialogs"), TASK)
    assert listed(capsys)[0]["turn"] == "running"
    journal.close()


def test_the_conversation_is_readable(endpoint, capsys):
    thought = endpoint.delta(reasoning_content="perhaps \x1b[2Jlog")
    endpoint.replies = [[thought, *endpoint.streamed("No. \x1b[31m\u202e")], WRONG, WRONG, RIGHT]
    hold(load_provider("openai", Options(model="m")))
    assert enable(["dialog", "show", "aten::exp"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("aten::exp, run-001: PASSED after 4 LLM calls, 4800 tokens\n")
    order = [
        "==== call 1, dialog 1, generate, openai m, 1000 + 200 tokens",
        "---- system: ",
        "see: enable dialog show aten::exp --call 1",
        "---- user\n\nWrite the kernel file for `aten::exp`.",
        "---- assistant\n\nNo. \\x1b[31m\\u202e",
        "---- UNUSABLE: NO_FILE",
        "==== call 2",
        "no ```python block",
        "---- TEST_FAILED: 1 WRONG",
        "1.5 for 2.5",
        "---- REPEATED",
        "was not tested again",
        "---- TEST_PASSED",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert text.count("Write the kernel file for") == 1, "each message is shown once"
    assert "You write Triton kernels" not in text
    assert "\x1b" not in text and "\u202e" not in text, "a model does not write to the terminal as it likes"

    assert enable(["dialog", "show", "aten::exp", "--call", "2"]) == 0
    text = capsys.readouterr().out
    assert "You write Triton kernels" in text
    assert text.count("==== call") == 1
    assert enable(["dialog", "show", "aten::exp", "--call", "1"]) == 0
    assert "---- reasoning\n\nperhaps \\x1b[2Jlog" in capsys.readouterr().out


def test_show_as_json(endpoint, capsys):
    endpoint.replies = [WRONG, RIGHT]
    hold(load_provider("openai", Options(model="m")))
    assert enable(["dialog", "show", "aten::exp", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stage"], found["calls"][0]["answer"], found["calls"][1]["answer"]) == ("PASSED", WRONG, RIGHT)
    assert [[m["role"] for m in call["messages"]] for call in found["calls"]] == [["system", "user"], ["user"]]
    assert found["calls"][0]["then"] == ["LINT_CLEAN", "TEST_FAILED: 1 WRONG"]
    assert enable(["dialog", "show", "aten::exp", "--call", "2", "--json"]) == 0
    (call,) = json.loads(capsys.readouterr().out)["calls"]
    assert [m["role"] for m in call["messages"]] == ["system", "user", "assistant", "user"]


def test_summaries_are_shown_with_their_request(endpoint, capsys):
    endpoint.replies = [WRONG, "in short", RIGHT]

    def tester(source):
        wrong = "tl.log(" in source
        return [Verdict("c", Outcome.COMPILE_ERROR if wrong else Outcome.PASS, "", "error " * 2000 if wrong else "")]

    journal = open_journal(Path(".enable/dialogs"), TASK)
    refine_operator(TASK, load_provider("openai", Options(model="m")), tester, journal)
    journal.close()
    assert enable(["dialog", "show", "aten::exp", "--json"]) == 0
    first, summary, last = json.loads(capsys.readouterr().out)["calls"]
    assert (summary["purpose"], summary["answer"], len(summary["messages"])) == ("summarize", "in short", 1)
    assert [m["role"] for m in last["messages"]] == ["user"]


def test_runs_of_campaigns(home, capsys):
    for name in ("a", "b"):
        manual(dialogs=f".enable/campaigns/{name}/dialogs")
    assert [(r["campaign"], r["turn"]) for r in listed(capsys)] == [("a", "yours"), ("b", "yours")]
    (home / "x.md").write_text(RIGHT)
    told = refused(capsys, "answer", "aten::exp", "x.md")
    assert "2 runs of aten::exp wait for an answer; name one with --campaign 'a' or 'b'" in told
    assert enable(["dialog", "answer", "aten::exp", "x.md", "--campaign", "b"]) == 0
    capsys.readouterr()
    assert [r["turn"] for r in listed(capsys)] == ["yours", "stopped"]
    assert "no campaign 'c' in .enable (campaigns: a, b)" in refused(capsys, "show", "aten::exp", "--campaign", "c")
    assert enable(["dialog", "show", "aten::exp", "--campaign", "a"]) == 0
    assert "enable dialog answer --campaign a aten::exp FILE" in capsys.readouterr().out


def test_a_torn_and_a_damaged_journal(home, capsys):
    manual()
    manual(restart=True)
    first, second = sorted(home.glob(".enable/dialogs/*/run-*/journal.jsonl"))
    first.write_bytes(first.read_bytes()[:-10])
    second.write_bytes(second.read_bytes().replace(b"PROMPTED", b"ANSWERED", 1))
    rows = listed(capsys)
    assert [r["stage"] for r in rows] == ["GENERATE", "DAMAGED"]
    assert "line 2 is damaged" in rows[1]["detail"]
    assert "line 2 is damaged" in refused(capsys, "show", "aten::exp", "--run", "2")
    first.write_bytes(first.read_bytes()[:10])
    assert [r["stage"] for r in listed(capsys)] == ["DAMAGED"], "a run that was killed as it began is none yet"


def test_bad_input_is_one_line(home, capsys):
    manual()
    (home / "latin").write_bytes(b"caf\xe9")
    told = refused(capsys, "show", "aten::gelu")
    assert "no dialog about aten::gelu (dialogs here: aten::exp); see: enable dialog list" in told
    assert "no dialog about aten::gelu" in refused(capsys, "show", "gelu")
    assert "aten::exp has calls 1 to 1, not 9; see all: enable dialog show aten::exp" in refused(
        capsys, "show", "aten::exp", "--call", "9"
    )
    assert "no run 7 of aten::exp (runs: run-001)" in refused(capsys, "show", "aten::exp", "--run", "7")
    assert "missing.md: No such file or directory; name a file with the answer, or - for stdin" in refused(
        capsys, "answer", "aten::exp", "missing.md"
    )
    assert "latin: not a text in UTF-8 (byte 3)" in refused(capsys, "answer", "aten::exp", "latin")
    (home / "good").write_text(RIGHT)
    assert "no run of aten::gelu waits for an answer (waiting: aten::exp); see: enable dialog list" in refused(
        capsys, "answer", "aten::gelu", "good"
    )


PRIVATE = """
import torch
def factory():
    torch.manual_seed(0)
    x = torch.rand(40) * 4 + 3.0
    torch.save(x, "x.pt")
    return lambda: torch.exp(x).sum()
"""
REFINE = """
import sys
from enable.cli import run
captured = run(["capture", "private:factory", "--values", "seeded", "--name", "p"])
words = "refine p --op aten::exp --restart --llm openai --model m --dialogs 1 --calls 1"
sys.exit(captured or run(words.split()))
"""


def test_a_journal_holds_no_values_that_its_trace_does_not_hold(home, endpoint):
    """A report on a wrong kernel lists the largest numbers; of a seeded trace those drawn, not those of the user."""
    (home / "private.py").write_text(PRIVATE)
    endpoint.replies = [WRONG]
    done = python("-c", REFINE, cwd=home, timeout=240)
    assert done.returncode == 1, done.stderr
    (journal,) = home.glob(".enable/dialogs/aten.exp/run-*/journal.jsonl")
    numbers = set(re.findall(r"\d+\.?\d*", journal.read_text()))
    x = torch.load(home / "x.pt", weights_only=True)
    largest = {f"{v:.4g}" for v in x.exp().topk(5).values.tolist()}
    assert "worst elements" in journal.read_text()
    assert any(min(map(float, largest)) / 2 < float(n) < 1.1 * max(map(float, largest)) for n in numbers), "like them"
    assert not largest & numbers
