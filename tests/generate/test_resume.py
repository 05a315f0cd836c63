"""kill -9 after every single event: the same command goes on, and no LLM call is repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from generate.journal import event_of, read_journal
from generate.machine import Kind

ROOT = Path(__file__).parents[2]
GOOD = (ROOT / "generate" / "examples" / "exp.py").read_text()
FENCED = f"```python\n{GOOD}```"
ANSWERS = [FENCED.replace("tl.exp", "tl.log"), "a summary", FENCED]

# Kills itself without warning after the n-th event of this process; 0: never.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from generate.dialog import open_journal, refine_operator
from generate.llm import Options, load_provider
from generate.machine import Limits
from generate.task import Task
from verify.outcome import Outcome, Verdict

left = int(sys.argv[2])
task = Task("aten::exp", ("aten::exp(Tensor self) -> Tensor",), ("float32",), "x.py")

def tester(source):
    wrong = "tl.log(" in source
    return [Verdict("c", Outcome.WRONG if wrong else Outcome.PASS, "", "bad " * 3000 if wrong else "")]

def die(state, event):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

journal = open_journal(Path(sys.argv[1]), task, Limits(dialogs=2, calls=4))
result = refine_operator(task, load_provider("openai", Options(model="m")), tester, journal, die)
print(result.stage, result.llm_calls, result.tokens, result.source == sys.argv[3], journal.dropped)
"""


def run(directory, kill_after):
    command = [sys.executable, "-c", PROGRAM, str(directory), str(kill_after), GOOD]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=dict(os.environ))


def events(directory):
    path = directory / "aten.exp" / "run-001" / "journal.jsonl"
    return [event_of(r) for r in read_journal(path) if "event" in r]


def test_killed_after_every_event_and_resumed(endpoint, tmp_path):
    endpoint.replies = list(ANSWERS)
    undisturbed = run(tmp_path / "a", 0)
    assert undisturbed.stdout.startswith("PASSED 3 3600 True"), undisturbed.stderr
    asked = [r["messages"] for r in endpoint.requests]

    endpoint.replies, endpoint.requests = list(ANSWERS), []
    count = 0
    while True:
        killed = run(tmp_path / "b", 1)
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        count += 1
    assert count == len(events(tmp_path / "a"))
    assert killed.stdout == undisturbed.stdout
    assert [r["messages"] for r in endpoint.requests] == asked, "no call was repeated"
    assert events(tmp_path / "b") == events(tmp_path / "a")


def test_killed_while_the_answer_is_written(endpoint, tmp_path):
    """The answer's record is torn: it is dropped, and only that call is made again."""
    endpoint.replies = ["no code at all", FENCED, FENCED]
    assert run(tmp_path, 5).returncode == -signal.SIGKILL
    path = tmp_path / "aten.exp" / "run-001" / "journal.jsonl"
    assert events(tmp_path)[-1].kind is Kind.ANSWERED
    path.write_bytes(path.read_bytes()[:-100])
    resumed = run(tmp_path, 0)
    assert resumed.stdout.startswith("PASSED 2 2400 True")
    assert "dropped" in resumed.stdout
    assert len(endpoint.requests) == 3
