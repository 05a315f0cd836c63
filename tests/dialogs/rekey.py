"""Put today's prompts to the recorded answers, after a change of templates or reports: the answers stay.

    python -m tests.dialogs.rekey first    # the 27 operators of tests/dialogs/first: some minutes; broad: an hour
    python -m tests.dialogs.rekey demo     # generate/recordings
    python -m tests.dialogs.rekey fused    # a minute: the dialog about a subgraph
    python -m tests.dialogs.rekey broad --openings    # a minute: only how dialogs begin, nothing is judged

A dialog that passes earlier than it did leaves its later answers out; one that runs out of answers is told, and its
recording stays as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from generate.journal import event_of, read_journal
from generate.llm import Message
from generate.machine import DialogLimits, EventKind, State, step
from generate.recording import to_recording
from tests.dialogs.fused.record import record_attention
from tests.dialogs.prepare import CAMPAIGNS, prepare

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

ROUNDS = 12  # answers of one operator
How: TypeAlias = Callable[[Path, Sequence[str], Path, Path], None]  # home, command, runs' directory, recordings'


def main() -> None:
    """Re-key what the command line names."""
    which = {"demo": demo, "fused": fused, **{name: partial(dialogs, name) for name in CAMPAIGNS}}
    words, how = sys.argv[1:], converse
    if words[1:] == ["--openings"]:
        words, how = words[:1], begin
    if len(words) != 1 or words[0] not in which:
        raise SystemExit(f"usage: python -m tests.dialogs.rekey {'|'.join(which)} [--openings]")
    with tempfile.TemporaryDirectory(prefix="rekey-") as directory:
        which[words[0]](Path(directory), how)


def dialogs(which: str, home: Path, how: How) -> None:
    """Those of a campaign beside this file."""
    prepare(which, home)
    command = ["generate", "--config", str(HERE / which / "campaign.toml"), "--library", "library", "--llm", "manual"]
    how(home, command, home / ".enable" / "campaigns" / which / "dialogs", HERE / which)


def demo(home: Path, how: How) -> None:
    """Those that the demo replays, on the library that it begins with."""
    library = home / "library"
    shutil.copytree(ROOT / "generate" / "kernels", library)
    (library / "pointwise" / "gelu_backward.py").unlink()
    shutil.copy(ROOT / "demo" / "embedding_dense_backward.py", library / "indexing")
    run(home, enable("capture", "nanogpt"))
    command = ["refine", "nanogpt", "--only-failing", "--llm", "manual", "--library", str(library)]
    how(home, command, home / ".enable" / "dialogs", ROOT / "generate" / "recordings")


def fused(home: Path, how: How) -> None:
    """That about a subgraph, beside this file."""
    record_attention(home / ".enable" / "traces" / "small.trace")
    run(home, enable("fuse", "small"))
    command = ["refine", "small", "--op", "fused::bmm_mul_softmax_bmm_caf4ebf8", "--llm", "manual"]
    how(home, command, home / ".enable" / "dialogs", HERE / "fused")


def begin(home: Path, command: Sequence[str], runs: Path, recordings: Path) -> None:
    """Run the command until it waits, and put what it asks first in the place of what was asked first."""
    run(home, enable(*command))
    for place in sorted(runs.glob("*/run-*")):
        target, asked = recording_of(place, recordings), opening(place / "journal.jsonl")
        header, *rows = map(json.loads, target.read_text().splitlines())
        first = [row for row in rows if row["conversation"] == rows[0]["conversation"]][: len(asked)]
        system = first[0]["content"]
        for row in rows:
            if row["content"] == system:
                row["content"] = asked[0].content
        for row, message in zip(first[1:], asked[1:], strict=True):
            row["content"] = message.content
        target.write_text("".join(f"{json.dumps(row)}\n" for row in (header, *rows)))
        sys.stdout.write(f"{target.name}: begins as today\n")


def opening(journal: Path) -> tuple[Message, ...]:
    """The messages with which a run's first dialog begins: the system's and the user's."""
    records = read_journal(journal)
    state = State(DialogLimits(**records[0]["limits"]))
    for record in records:
        if "event" in record:
            event = event_of(record)
            state = step(state, event)
            if event.kind is EventKind.PROMPTED:
                return tuple(state.messages)
    raise SystemExit(f"{journal}: asks nothing")


def converse(home: Path, command: Sequence[str], runs: Path, recordings: Path) -> None:
    """Run the command, answer what it asks from the recordings, and so on; then record the dialogs anew."""
    for _ in range(ROUNDS):
        run(home, enable(*command))
        if not sum(answered(place, recordings) for place in sorted(runs.glob("*/run-*"))):
            break
    for place in sorted(runs.glob("*/run-*")):
        target = recording_of(place, recordings)
        waits = len(list(place.glob("*-prompt.md"))) > len(list(place.glob("*-answer.md")))
        if waits:
            sys.stdout.write(f"{target.name}: the recorded answers do not end it; it stays\n")
            continue
        fresh = home / target.name
        to_recording(place / "journal.jsonl", fresh)
        shutil.move(fresh, target)
        sys.stdout.write(f"{target.name}: {len(list(place.glob('*-answer.md')))} answers\n")


def answered(place: Path, recordings: Path) -> bool:
    """Whether the recording had an answer to the prompt that waits in a run's directory; it is there now."""
    prompts, given = (sorted(place.glob(f"*-{what}.md")) for what in ("prompt", "answer"))
    known = answers(recording_of(place, recordings))
    if len(prompts) <= len(given) or len(given) >= len(known):
        return False
    prompts[-1].with_name(prompts[-1].name.replace("prompt", "answer")).write_text(known[len(given)])
    return True


def recording_of(place: Path, recordings: Path) -> Path:
    """The file of a run's operator: by its whole name, or as in the demo by its short one."""
    whole, short = (recordings / f"{name}.jsonl" for name in (place.parent.name, place.parent.name.partition(".")[2]))
    return short if short.is_file() else whole


def answers(recording: Path) -> list[str]:
    """What the model said, in order."""
    lines = recording.read_text().splitlines() if recording.is_file() else []
    return [row["content"] for row in map(json.loads, lines) if row.get("role") == "assistant"]


def enable(*words: str) -> list[str]:
    return [sys.executable, "-m", "enable", *words]


def run(home: Path, command: Sequence[str], **env: str) -> None:
    """Exit status 1 is a campaign that did not pass, which is told at the end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    found = subprocess.run(command, cwd=home, env=environment, stdout=subprocess.DEVNULL, check=False)
    if found.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit status {found.returncode}")


if __name__ == "__main__":
    main()
