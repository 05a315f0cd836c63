"""kill -9 after every single event: the same command goes on, and no LLM call is repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from generate.journal import event_of, read_journal
from generate.machine import EventKind

ROOT = Path(__file__).parents[2]
GOOD = (ROOT / "generate" / "examples" / "exp.py").read_text()
FENCED = f"```python\n{GOOD}```"
WRONG = FENCED.replace("tl.exp", "tl.log")
# A long report that is summarised, no file, the same file again, a crash that is debugged, and the right one.
ANSWERS = [WRONG, "a summary", "prose", WRONG, FENCED.replace("tl.exp", "tl.sin"), FENCED]

# Kills itself without warning after the n-th event; 0: never. With "each", goes on in one process an event until it is
# through, and prints how many were killed: the processes are forked, which saves the imports.
PROGRAM = """
import os, signal, sys
import openai, dotenv, generate.llm.openai, generate.llm.retry, httpx2  # before the forks
from pathlib import Path
from generate.dialog import open_journal, refine_operator
from generate.llm import Options, load_provider
from generate.machine import DialogLimits
from generate.task import Task
from verify.outcome import Outcome, Verdict

left = 1 if sys.argv[2] == "each" else int(sys.argv[2])
task = Task("aten::exp", ("aten::exp(Tensor self) -> Tensor",), ("float32",), "x.py")

def tester(source):
    if "tl.log(" in source:
        return [Verdict("c", Outcome.WRONG, "", "bad " * 3000)]
    return [Verdict("c", Outcome.CRASH if "tl.sin(" in source else Outcome.PASS, "", "crashed")]

def die(state, event):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def hold():
    journal = open_journal(Path(sys.argv[1]), task, DialogLimits(dialogs=2, calls=6))
    models = [load_provider("openai", Options(model=name)) for name in ("m", "small")]
    result = refine_operator(task, models[0], tester, journal, die, lambda source: "in line 3", models[1])
    print(result.stage, result.llm_calls, result.tokens, result.source == sys.argv[3], journal.dropped, flush=True)

killed = 0
while sys.argv[2] == "each":
    child = os.fork()
    if not child:
        break
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        sys.exit(print(killed))
    assert os.WTERMSIG(status) == signal.SIGKILL
    killed += 1
hold()
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
    assert undisturbed.stdout.startswith("PASSED 6 7200 True"), undisturbed.stderr
    asked = [(r["model"], r["messages"]) for r in endpoint.requests]
    assert [model for model, _ in asked] == ["m", "small", "m", "m", "m", "m"]
    kinds = [e.kind for e in events(tmp_path / "a")]
    assert {EventKind.SUMMARIZED, EventKind.UNUSABLE, EventKind.REPEATED, EventKind.DEBUGGED} <= set(kinds)

    endpoint.replies, endpoint.requests = list(ANSWERS), []
    resumed = run(tmp_path / "b", "each")
    assert resumed.stdout == f"{undisturbed.stdout}{len(events(tmp_path / 'a'))}\n", resumed.stderr
    assert [(r["model"], r["messages"]) for r in endpoint.requests] == asked, "no call was repeated"
    assert events(tmp_path / "b") == events(tmp_path / "a")


def test_killed_while_the_answer_is_written(endpoint, tmp_path):
    """The answer's record is torn: it is dropped, and only that call is made again."""
    endpoint.replies = ["no code at all", FENCED, FENCED]
    assert run(tmp_path, 5).returncode == -signal.SIGKILL
    path = tmp_path / "aten.exp" / "run-001" / "journal.jsonl"
    assert events(tmp_path)[-1].kind is EventKind.ANSWERED
    path.write_bytes(path.read_bytes()[:-100])
    resumed = run(tmp_path, 0)
    assert resumed.stdout.startswith("PASSED 2 2400 True")
    assert "dropped" in resumed.stdout
    assert len(endpoint.requests) == 3
