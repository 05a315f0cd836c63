"""docs/platforms/your-chip.md: each command is typed in bash in an empty folder, and prints what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from traces.program import NAME_VARIABLE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "platforms" / "your-chip.md"
# Variables that a user does not set: the first two are for tests in this process.
NOT_A_USERS = (NAME_VARIABLE, "TRITON_INTERPRET", "ENABLE_WORKSPACE", "ENABLE_LIBRARY", "OPENAI_API_KEY", "COLUMNS")
MARK = "-- end of block --"
PROGRESS = re.compile(r" \d+ of \d+  (?:\S+  )?\d+:\d\d")  # printed only by a command that takes long
# A number with a fraction, which differs by machine, but not a percentage.
FRACTION = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?(?![.\d]* %)")
PRECISE = 5  # digits from which a number is a result, and not a time or a size


def blocks():
    """Return the page's commands, each with the lines that the page shows as their output, or None."""
    fences = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert {kind for kind, _ in fences} == {"bash", "text"}
    after = [*fences[1:], ("", "")]
    return [
        (text, output.splitlines() if kind == "text" else None)
        for (language, text), (kind, output) in zip(fences, after, strict=True)
        if language == "bash"
    ]


def digits(number):
    return len(re.sub(r"e.*|\D", "", number))


def agrees(shown, line):
    """Return True if a line is the shown one, but for blanks and imprecise numbers; ` ...` stands for the rest."""
    shown, cut, _ = shown.partition(" ...")
    shape, other = (" ".join(FRACTION.sub("#", text).split()) for text in (shown, line))
    if not (other.startswith(shape) if cut else other == shape):
        return False
    pairs = zip(FRACTION.findall(shown), FRACTION.findall(line), strict=False)
    return all(float(a) == pytest.approx(float(b), rel=1e-3) for a, b in pairs if digits(a) >= PRECISE)


def disagreement(shown, lines):
    """Return the first shown line that is missing, or the first printed one that the page leaves out; '' if none."""
    lines, anywhere = [line for line in lines if line.strip() and not PROGRESS.search(line)], False
    for line in filter(str.strip, shown):
        if line == "...":
            anywhere = True
            continue
        near = lines if anywhere else lines[:1]
        index = next((i for i, printed in enumerate(near) if agrees(line, printed)), None)
        if index is None:
            return f"the page shows: {line}\nprinted: {near[0] if near else 'nothing more'}"
        lines, anywhere = lines[index + 1 :], False
    return "" if anywhere or not lines else f"the page leaves out: {lines[0]}"


@pytest.mark.timeout(900)  # a minute and a half on two quiet cores, and a minute where orionchip is not built yet
def test_the_tutorial_from_an_empty_folder_to_a_trained_model(tmp_path):
    page = blocks()
    script = "".join(f"{text}echo '{MARK}'\n" for text, _ in page)
    environment = {name: value for name, value in os.environ.items() if name not in NOT_A_USERS}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    typed = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment | {"PATH": path, "TOOLKIT": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=880,
    )
    assert typed.returncode == 0, typed.stdout[-4000:]
    outputs = typed.stdout.split(f"{MARK}\n")
    assert len(outputs) == len(page) + 1
    for (text, shown), printed in zip(page, outputs, strict=False):
        if shown is None:
            assert not printed, f"{text}prints, and the page does not show it:\n{printed}"
        else:
            reason = disagreement(shown, printed.splitlines())
            assert not reason, f"{text}{reason}\n\nall that was printed:\n{printed}"


def test_the_page_shows_what_the_steps_print():
    typed = "".join(text for text, _ in blocks())
    steps = ("platform discover", "capture", "coverage", "refine", "run", "export")
    assert all(f"\nenablekit {step} " in f"\n{typed}" for step in steps)
    assert [text for text, shown in blocks() if not shown] == [next(t for t, _ in blocks() if "cat > orion.yaml" in t)]


@pytest.mark.parametrize(
    "shown, reason",
    [
        (["a  1", "...", "seconds 7.5, loss 4.2591"], ""),
        (["...", "b 2 overloads ...", "seconds 1.5, loss 4.2592"], ""),
        (["a 1", "seconds 1.5, loss 4.2591"], "the page shows: seconds"),
        (["a 1", "...", "seconds 1.5, loss 4.3591"], "the page shows: seconds"),
        (["a 2", "..."], "the page shows: a 2\nprinted: a 1"),
        (["a 1", "..", "..."], "the page shows: .."),
        (["a 1"], "the page leaves out: b 2 overloads (95.0 %) and more"),
        (["a 1", "b 2 overloads (96.0 %) and more", "..."], "the page shows: b 2"),
    ],
)
def test_a_page_that_shows_something_else_is_seen(shown, reason):
    lines = ["a 1", "b 2 overloads (95.0 %) and more", "seconds 1.5, loss 4.2591"]
    assert disagreement(shown, lines).startswith(reason) and bool(reason) == bool(disagreement(shown, lines))
