"""Dialogs that a real model held (docs/results/dialogs.md), replayed offline: a sample of each campaign."""

import json
from pathlib import Path

import pytest
from program import enable
from shared import sampled
from warm import python

pytestmark = pytest.mark.timeout(900)  # half a minute on two quiet cores
ROOT = Path(__file__).parents[2]
DIALOGS = ROOT / "tests" / "dialogs"
SAMPLE = {
    "first": ("aten::heaviside",),
    "broad": ("aten::trace",),
}
TESTS = {"first": ("heaviside",), "broad": ("trace",)}  # operator tests whose calls these are


# The dialogs of the first campaign are replayed in the same way.
@pytest.mark.parametrize("which", sampled(SAMPLE, ["broad"]))
def test_recorded_dialogs_lead_to_the_same_kernels(tmp_path, which):
    prepared = python("-m", "tests.dialogs.prepare", which, *TESTS[which], cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert prepared.returncode == 0, prepared.stderr
    chosen = [word for name in SAMPLE[which] for word in ("--op", name)]
    campaign = DIALOGS / which / "campaign.toml"
    told = enable("generate", "--config", campaign, "--library", "library", *chosen, "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr[-2000:]
    found = json.loads(told.stdout)
    assert found["exits"] == {"PASSED": len(SAMPLE[which])}
    for row in found["operators"]:
        recording = DIALOGS / which / f"{row['overload'].replace('::', '.')}.jsonl"
        answers = [json.loads(line) for line in recording.read_text().splitlines()]
        last = [message["content"] for message in answers if message.get("role") == "assistant"][-1]
        assert Path(tmp_path / row["kernel"]).read_text().strip() in last
