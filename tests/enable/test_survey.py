"""Many models in one table: what each came to, what is lacking, and files that name them wrongly."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from warm import python

from enable.survey.entries import ModelEntry, load
from enable.survey.kept import Kept
from enable.survey.stages import Commands, ModelRow
from tests.support.program import enable
from tests.support.shared import without
from traces import UserError

MODELS = """
import os
import torch

def step(device="cpu", act="relu"):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3).to(device)
    batches = iter(lambda: torch.ones(2, 4).to(device), None)
    loss = lambda model, batch: getattr(torch, act)(model(batch)).sum()
    return model, batches, loss, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)

def dies(device="cpu"):
    os._exit(7)
"""
TABLE = """
steps = 2
[models.good]
target = "mine:step"
[models.lacking]
target = "mine:step"
set = {act = "tanh"}
[models.dead]
target = "mine:dies"
[models.unknown]
target = "nanogtp"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with models, a table of them, and a library that lacks tanh."""
    found = tmp_path_factory.mktemp("survey")
    (found / "mine.py").write_text(MODELS)
    (found / "table.toml").write_text(TABLE)
    without(["aten::tanh"], found / "library")
    return found


def ended(commands, words):
    """A command in a process that need not import torch anew."""
    process = python("-m", "enable", *words, cwd=Path.cwd(), timeout=250)
    return process.returncode, process.stdout, process.stderr


@pytest.fixture(scope="module")
def found(home):
    """What a survey of all of them printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Commands, "_ended", ended)
        run = enable("survey", "table.toml", "--library", "library", "--json", cwd=home)
    assert run.returncode == 1, run.stderr
    return json.loads(run.stdout)


def test_each_model_comes_as_far_as_it_does(found):
    rows = {row["name"]: row for row in found["models"]}
    good, lacking, dead, unknown = (rows[name] for name in ("good", "lacking", "dead", "unknown"))
    assert good["recorded"] and good["replayed"] and good["trained"] and good["missing"] == []
    assert good["exact"] > 5 and good["overloads"]["covered"] == good["overloads"]["compute"] > 3
    assert lacking["recorded"] and lacking["replayed"] and not lacking["trained"]
    assert lacking["missing"] == ["aten::tanh"] and "aten::tanh" in lacking["stopped"]
    assert not dead["recorded"] and dead["errors"] == {"capture": "ended with status 7 and said nothing"}
    assert "did you mean" in unknown["errors"]["capture"] or "choose from" in unknown["errors"]["capture"]
    assert found["counts"] == {"models": 4, "recorded": 2, "replayed": 2, "covered": 1, "trained": 1}
    assert found["lacking"] == {"aten::tanh": ["lacking"]} and not found["passed"]
    assert found["overloads"]["compute"] - found["overloads"]["covered"] == 1


def test_what_it_typed_can_be_typed(found, home):
    commands = next(row for row in found["models"] if row["name"] == "good")["commands"]
    assert list(commands) == ["capture", "verify", "coverage", "run"]
    run = enable(*shlex.split(commands["verify"])[1:], cwd=home)
    assert run.returncode == 0 and "bit-exact" in run.stdout


def test_tables(home):
    """Of commands in processes of their own."""
    run = enable("survey", "table.toml", "good", "dead", "--library", "library", cwd=home)
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    assert lines[1].startswith("good   mine:step") and lines[1].endswith("as on the CPU")
    assert "  dead: capture: ended with status 7 and said nothing" in lines
    assert lines[-1].startswith("2 models on sim: 1 recorded, 1 replayed, 1 covered, 1 train as on the CPU; ")
    run = enable("survey", "table.toml", "dead", "--library", "library", "--markdown", cwd=home)
    assert run.returncode == 1 and run.stdout.startswith("| model | target | overloads |")


def test_an_interrupted_survey_goes_on(tmp_path):
    how = {"platform": "sim", "steps": "2"}
    kept, row = Kept(tmp_path / "ended.jsonl", how), ModelRow("a", "nanogpt", found={"capture": {"errors": []}})
    kept.add(["nanogpt"], row)
    with (tmp_path / "ended.jsonl").open("a") as file:
        file.write('\n{"of": "cut')
    again = Kept(tmp_path / "ended.jsonl", how)
    assert again.row("a", ["nanogpt"]) == row
    assert again.row("a", ["nanogpt", "--batch", "2"]) is again.row("b", ["nanogpt"]) is None
    again.add(["dlrm"], ModelRow("b", "dlrm"))
    again = Kept(tmp_path / "ended.jsonl", how)
    assert again.row("a", ["nanogpt"]) == row and again.row("b", ["dlrm"]) is not None
    assert Kept(tmp_path / "ended.jsonl", {**how, "steps": "3"}).row("a", ["nanogpt"]) is None
    again.forget({"a": ["nanogpt"]})  # a survey of some of the models has ended
    again = Kept(tmp_path / "ended.jsonl", how)
    assert again.row("a", ["nanogpt"]) is None and again.row("b", ["dlrm"]) is not None
    again.forget({"b": ["dlrm"]})
    assert not (tmp_path / "ended.jsonl").exists()


def test_a_survey_that_is_stopped_keeps_what_has_ended(tmp_path):
    (tmp_path / "mine.py").write_text(f"{MODELS}\ndef sleeps(device='cpu'):\n    import time\n    time.sleep(600)\n")
    (tmp_path / "table.toml").write_text("models.dead.target = 'mine:dies'\nmodels.asleep.target = 'mine:sleeps'\n")
    command = [sys.executable, "-m", "enable", "survey", "table.toml"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    rows = tmp_path / ".enable" / "surveys" / "table" / "sim" / "ended.jsonl"
    while not (rows.is_file() and rows.read_text()) and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 143, told
    assert b"to go on, run: enable survey table.toml" in told
    assert [json.loads(line)["row"]["name"] for line in rows.read_text().strip().splitlines()] == ["dead"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "models: is missing"),
        ("[models]", "models"),
        ("steps = 0\n[models.a]\ntarget = 'nanogpt'", "steps = 0: "),
        ("[models.a]", "models.a.target: is missing"),
        ("[models.a]\ntarget = 'nanogpt'\nsize = 2", "models.a.size: there is no such setting; there are: target"),
        ("step = 2\n[models.a]\ntarget = 'nanogpt'", "step: there is no such setting; there are: steps, models"),
        ("[models.'a/b']\ntarget = 'nanogpt'", "the name 'a/b' is not letters, digits"),
        ("[models.a", "cannot be read as TOML"),
    ],
)
def test_wrong_files(tmp_path, text, said):
    (tmp_path / "table.toml").write_text(text)
    run = enable("survey", "table.toml", cwd=tmp_path)
    assert run.returncode == 2 and said in run.stderr and len(run.stderr.splitlines()) == 1


def test_a_model_that_is_not_there(tmp_path):
    (tmp_path / "table.toml").write_text(TABLE)
    with pytest.raises(
        UserError, match="has no model 'goood', did you mean good. choose from good, lacking, dead, unknown"
    ):
        load(tmp_path / "table.toml", ["goood"])
    assert enable("survey", "nowhere.toml", cwd=tmp_path).returncode == 2


def test_settings_travel_as_json():
    entry = ModelEntry(target="t", batch=3, set={"depths": [1, 2], "bias": True, "act": "gelu", "rate": 0.5})
    assert entry.words() == [
        *("t", "--batch", "3", "--set", "depths=[1, 2]", "--set", "bias=true", "--set", "act=gelu", "--set", "rate=0.5")
    ]
