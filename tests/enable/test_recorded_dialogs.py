"""Dialogs that a real model held (docs/results/dialogs.md), replayed offline: a sample of each campaign."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared import sampled

pytestmark = pytest.mark.timeout(900)  # half a minute on two quiet cores
ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "enable"
DIALOGS = ROOT / "tests" / "dialogs"
SAMPLE = {
    "first": ("aten::heaviside",),
    "broad": ("aten::trace",),
}
TESTS = {"first": ("heaviside",), "broad": ("trace",)}  # operator tests whose calls these are


# The dialogs of the first campaign are replayed in the same way.
@pytest.mark.parametrize("which", sampled(SAMPLE, ["broad"]))
def test_recorded_dialogs_lead_to_the_same_kernels(tmp_path, which):
    prepared = [sys.executable, "-m", "tests.dialogs.prepare", which, *TESTS[which]]
    environment = {"PYTHONPATH": str(ROOT)}
    subprocess.run(prepared, cwd=tmp_path, check=True, capture_output=True, env={**os.environ, **environment})
    chosen = [word for name in SAMPLE[which] for word in ("--op", name)]
    command = [
        PROGRAM,
        "generate",
        "--config",
        DIALOGS / which / "campaign.toml",
        "--library",
        "library",
        *chosen,
        "--json",
    ]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=800)
    assert told.returncode == 0, told.stderr[-2000:]
    found = json.loads(told.stdout)
    assert found["exits"] == {"PASSED": len(SAMPLE[which])}
    for row in found["operators"]:
        recording = DIALOGS / which / f"{row['overload'].replace('::', '.')}.jsonl"
        answers = [json.loads(line) for line in recording.read_text().splitlines()]
        last = [message["content"] for message in answers if message.get("role") == "assistant"][-1]
        assert Path(tmp_path / row["kernel"]).read_text().strip() in last
