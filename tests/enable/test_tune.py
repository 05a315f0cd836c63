"""`enable tune` as a user types it, with times that were taken before: this machine has no GPU."""

import json
from pathlib import Path

import pytest
import torch
from timings import recording, times_file

from capture import Recorder
from enable.cli import run

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "generate" / "kernels"
SIGMOID = (KERNELS / "pointwise" / "sigmoid.py").read_text()
OTHER = SIGMOID.replace("1 / (1 + tl.exp(-x))", "1.0 / (tl.exp(-x) + 1.0)")
WRONG = SIGMOID.replace("1 / (1 + tl.exp(-x))", "1 / (1.5 + tl.exp(-x))")
NLL = (KERNELS / "loss" / "nll_loss_backward.py").read_text()
NAMES = [f"sigmoid(self: {dtype} [{n}] stride [1])" for n in (64, 1000, 5000) for dtype in ("float32", "bfloat16")]
LEARNED = "Learned: the sum is written with the constant last."


def answer(source, learned=LEARNED):
    return f"Here it is.\n\n```python\n{source}```\n\n{learned}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with a trace of sigmoid and of the loss, whose verdicts are kept from test to test."""
    home = tmp_path_factory.mktemp("tune")
    torch.manual_seed(0)
    with Recorder(home / "traces" / "small.trace", values="full"):
        for n in (64, 1000, 5000):
            for dtype in (torch.float32, torch.bfloat16):
                torch.sigmoid(torch.randn(n, dtype=dtype))
        for rows, classes in ((32, 10), (500, 40), (7, 3), (3, 1000), (5, 5)):
            logs = torch.randn(rows, classes).log_softmax(1).requires_grad_()
            torch.nn.functional.nll_loss(logs, torch.randint(0, classes, (rows,))).backward()
    with Recorder(home / "traces" / "bare.trace", values="stats"):
        torch.sigmoid(torch.randn(8))
    return home


@pytest.fixture
def home(made):
    """The same without searches, accepted kernels and skills."""
    import shutil

    for name in ("tune", "kernels"):
        shutil.rmtree(made / name, ignore_errors=True)
    (made / "skills.jsonl").unlink(missing_ok=True)
    return made


def tune(home, *arguments, expect=0):
    status = run(["--workspace", str(home), "tune", *map(str, arguments)])
    assert status == expect


def search(home, tmp_path, answers, others, *arguments, expect=0):
    """Search for a faster sigmoid with these answers and times."""
    answers = recording(tmp_path / "answers" / "sigmoid.jsonl", "aten::sigmoid", answers)
    times = tmp_path / "times.jsonl"
    if not times.exists():
        times_file(times, NAMES, (SIGMOID, 10.0), others)
    options = ["--trace", "small", "--recordings", answers, "--times", times, *arguments]
    tune(home, "sigmoid", *options, expect=expect)


def test_a_faster_kernel_is_accepted_and_what_it_taught_kept(home, tmp_path, capsys):
    search(home, tmp_path, [answer(WRONG), answer(OTHER)], [(OTHER, 8.0), (WRONG, 1.0)], "--calls", "2", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["exit"], found["candidates"], found["used"]["calls"]) == ("ACCEPTED", 1, 2)
    assert found["gain"]["mean"] == pytest.approx(1.25, rel=1e-3) and found["shapes"] == len(NAMES)
    assert Path(found["kernel"]).read_text() == OTHER
    (head, skill) = map(json.loads, (home / "skills.jsonl").read_text().splitlines())
    assert head == {"format": "enable-skills", "version": 1}
    assert skill["text"] == "the sum is written with the constant last." and skill["target"] == "sm_90"
    assert {s["shape"] for s in skill["support"]} == set(NAMES)
    assert all(s["before_us"] > s["after_us"] for s in skill["support"])
