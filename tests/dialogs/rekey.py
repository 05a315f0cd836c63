"""Put today's prompts to the recorded answers, after a change of templates or reports: the answers stay.

    python -m tests.dialogs.rekey first    # the 27 operators of tests/dialogs/first: some minutes; broad: 127
    python -m tests.dialogs.rekey demo     # generate/recordings

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
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from generate.recording import to_recording
from tests.dialogs.prepare import CAMPAIGNS, prepare

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

ROUNDS = 12  # answers of one operator


def main() -> None:
    """Re-key what the command line names."""
    which = {"demo": demo, **{name: partial(dialogs, name) for name in CAMPAIGNS}}
    if len(sys.argv) != 2 or sys.argv[1] not in which:
        raise SystemExit(f"usage: python -m tests.dialogs.rekey {'|'.join(which)}")
    with tempfile.TemporaryDirectory(prefix="rekey-") as directory:
        which[sys.argv[1]](Path(directory))


def dialogs(which: str, home: Path) -> None:
    """Those of a campaign beside this file."""
    prepare(which, home)
    command = ["generate", "--config", str(HERE / which / "campaign.toml"), "--library", "library", "--llm", "manual"]
    converse(home, command, home / ".enable" / "campaigns" / which / "dialogs", HERE / which)


def demo(home: Path) -> None:
    """Those that the demo replays, on the library that it begins with."""
    library = home / "library"
    shutil.copytree(ROOT / "generate" / "kernels", library)
    (library / "pointwise" / "gelu_backward.py").unlink()
    shutil.copy(ROOT / "demo" / "embedding_dense_backward.py", library / "indexing")
    run(home, enable("capture", "nanogpt"))
    command = ["refine", "nanogpt", "--only-failing", "--llm", "manual", "--library", str(library)]
    converse(home, command, home / ".enable" / "dialogs", ROOT / "generate" / "recordings")


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
