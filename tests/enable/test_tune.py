"""`enable tune` as a user types it, with times that were taken before: this machine has no GPU."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from timings import recording, times_file

from capture import Recorder
from capture.device import compiles
from enable.cli import run
from enable.report.tuning import searches
from enable.workspace import Workspace
from generate.journal import read_journal
from generate.kernel_search.skills import Skill, SkillStore, Support, shape_class
from generate.kernel_search.space import Space, fixed, with_rows

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "generate" / "kernels"
SIGMOID = (KERNELS / "pointwise" / "sigmoid.py").read_text()
OTHER = SIGMOID.replace("1 / (1 + tl.exp(-x))", "1.0 / (tl.exp(-x) + 1.0)")
WRONG = SIGMOID.replace("1 / (1 + tl.exp(-x))", "1 / (1.5 + tl.exp(-x))")
NLL = re.sub(  # with few settings
    "(?m)^SPACE = .*$",
    'SPACE = (("BLOCK", (1024, 4096)), ("WARPS", (4, 8)))',
    (KERNELS / "loss" / "nll_loss_backward.py").read_text(),
)
LOSSES = ((32, 10), (500, 40), (7, 3), (3, 1000), (5, 5))
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
        for rows, classes in LOSSES:
            logs = torch.randn(rows, classes).log_softmax(1).requires_grad_()
            torch.nn.functional.nll_loss(logs, torch.randint(0, classes, (rows,))).backward()
    with Recorder(home / "traces" / "bare.trace", values="stats"):
        torch.sigmoid(torch.randn(8))
    return home


@pytest.fixture
def home(made):
    """The same without searches, accepted kernels and skills."""
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
    (tree,) = searches(Workspace(home))
    assert [(n["number"], n["move"], n["state"]) for n in tree["nodes"]] == [
        (0, "in force", "PASSED"),
        (1, "inherit", "PASSED"),
    ]
    assert tree["nodes"][1]["mean"] == pytest.approx(1.25, rel=1e-3) and not tree["open"]


def test_a_search_is_replayed_from_what_it_left(home, tmp_path, capsys):
    search(home, tmp_path, [answer(OTHER)], [(OTHER, 9.8)], "--calls", "1", "--json", expect=1)
    first = json.loads(capsys.readouterr().out)
    words = ["sigmoid", "--trace", "small", "--times", tmp_path / "times.jsonl", "--calls", "1", "--restart", "--json"]
    tune(home, *words, "--recordings", Path(first["directory"]) / "recording", expect=1)
    again = json.loads(capsys.readouterr().out)
    assert again["directory"].endswith("run-002")
    assert [again[n] for n in ("exit", "gain", "used")] == [first[n] for n in ("exit", "gain", "used")]


def test_what_is_wrong_is_neither_timed_nor_accepted_however_fast(home, tmp_path, capsys):
    search(home, tmp_path, [answer(WRONG)] * 4, [(WRONG, 1.0)], "--calls", "4", "--json", expect=1)
    found = json.loads(capsys.readouterr().out)
    assert (found["exit"], found["kernel"], found["gain"]) == ("NOT_FASTER", None, None)
    (tree,) = searches(Workspace(home))
    assert tree["nodes"][1]["state"] == "OUT_OF_DIALOGS" and tree["nodes"][1]["mean"] == 0
    assert not (home / "kernels").exists() and not (home / "skills.jsonl").exists()


@pytest.mark.parametrize(
    "after, told",
    [
        (9.8, "less than 3% beyond noise"),
        (
            [5.0, 5.0, 5.0, 5.0, 5.0, 11.0],
            "sigmoid(self: bfloat16 [5000] stride [1]) takes 10.0% longer, 5% is the most",
        ),
    ],
)
def test_too_little_is_not_accepted(home, tmp_path, capsys, after, told):
    search(home, tmp_path, [answer(OTHER)], [(OTHER, after)], "--calls", "1", expect=1)
    assert told in searches(Workspace(home))[0]["nodes"][1]["detail"]
    assert "NOT_FASTER" in capsys.readouterr().out and not (home / "kernels").exists()


@pytest.mark.parametrize("budget", [("--tokens", "1"), ("--money", "1e-9", "--prices", "1,1"), ("--minutes", "1e-6")])
def test_budgets_end_a_search_and_a_larger_one_goes_on(home, tmp_path, capsys, budget):
    search(home, tmp_path, [answer(OTHER)] * 2, [(OTHER, 9.8)], *budget, "--json", expect=1)
    found = json.loads(capsys.readouterr().out)
    spent = "minutes are over" if "--minutes" in budget else f"{budget[0][2:]} is spent"
    calls = 0 if "--minutes" in budget else 1
    assert spent in found["why"] and (found["used"]["calls"], found["candidates"]) == (calls, calls)
    search(home, tmp_path, [answer(OTHER)] * 2, [], "--calls", str(calls + 1), "--json", expect=1)
    more = json.loads(capsys.readouterr().out)
    assert (more["directory"], more["used"]["calls"]) == (found["directory"], calls + 1)


def test_a_killed_search_goes_on_and_prompts_say_why_a_kernel_is_slow(home, tmp_path, capsys):
    times = times_file(tmp_path / "times.jsonl", NAMES, (SIGMOID, 10.0), [(OTHER, 9.8)])
    words = ["sigmoid", "--trace", "small", "--times", times, "--llm", "manual", "--calls", "1"]
    tune(home, *words)
    assert "WAITING" in capsys.readouterr().out
    first = home / "tune" / "aten.sigmoid" / "run-001"
    prompt = (first / "001-prompt.md").read_text()
    said = ("# Where its time goes", NAMES[2], "of a launch", "32 registers", "waves on 132")
    assert [what for what in said if what not in prompt] == [] and "What was learned before" not in prompt
    before = read_journal(first / "journal.jsonl")
    (first / "001-answer.md").write_text(answer(OTHER))
    tune(home, *words, expect=1)
    assert "1 candidates, 1 LLM calls" in capsys.readouterr().out
    assert read_journal(first / "journal.jsonl")[: len(before)] == before, "it went on, and did not begin anew"


def test_what_was_answered_before_a_kill_is_judged_though_the_budget_is_spent(home, tmp_path, capsys):
    budget = ("--calls", "1", "--json")
    search(home, tmp_path, [answer(OTHER)], [(OTHER, 9.8)], *budget, expect=1)
    first = json.loads(capsys.readouterr().out)
    run_directory = Path(first["directory"])
    (node,) = run_directory.glob("nodes/001/*/run-001/journal.jsonl")
    lines = node.read_text().splitlines(keepends=True)
    answered = next(i for i, line in enumerate(lines) if '"ANSWERED"' in line)
    node.write_text("".join(lines[: answered + 1]))
    journal = run_directory / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))  # without the end of the node
    search(home, tmp_path, [answer(OTHER)], [], *budget, expect=1)
    again = json.loads(capsys.readouterr().out)
    assert [again[n] for n in ("candidates", "gain", "used", "directory")] == [
        first[n] for n in ("candidates", "gain", "used", "directory")
    ]
    assert again["candidates"] == 1


def test_skills_are_shown_unless_they_are_switched_off(home, tmp_path, capsys):
    times = times_file(tmp_path / "times.jsonl", NAMES, (SIGMOID, 10.0), [])
    support = Support(NAMES[0], shape_class(64), 9.0, 6.0, 61, "0" * 64, "1" * 64)
    SkillStore(home / "skills.jsonl").add(Skill("Wide loads.", "pointwise", "aten::exp", "sm_90", (support,)))
    for number, more in ((1, []), (2, ["--no-skills"])):
        tune(home, "sigmoid", "--trace", "small", "--times", times, "--llm", "manual", "--calls", "1", *more)
        prompt = (home / "tune" / "aten.sigmoid" / f"run-{number:03d}" / "001-prompt.md").read_text()
        assert ("Wide loads. (measured on sm_90: aten::exp" in prompt) is (not more)


def test_settings_are_chosen_without_a_model(home, tmp_path, capsys, monkeypatch):
    shutil.copytree(KERNELS, tmp_path / "library")
    (tmp_path / "library" / "loss" / "nll_loss_backward.py").write_text(NLL)
    monkeypatch.setenv("ENABLE_LIBRARY", str(tmp_path / "library"))
    names = [
        f"nll_loss_backward(grad_output: float32 [] stride [], self: float32 [{m}, {n}] stride [{n}, 1], "
        f"target: int64 [{m}] stride [1], weight: None, reduction: 1, ignore_index: -100, "
        "total_weight: float32 [] stride [])"
        for m, n in LOSSES
    ]
    space = Space.of(NLL, "nll")
    assert len(space.settings) == 4
    settings = [(fixed(NLL, s), 6.0 if s == (1024, 4) else 9.0 + k / 100) for k, s in enumerate(space.settings)]
    rows = space.chosen("sm_90", dict.fromkeys((4, 8, 11, 14), (1024, 4)))
    assert rows == (("", 0, (4096, 8)), ("sm_90", 16, (1024, 4)), ("sm_90", 1 << 15, (4096, 8)))
    after = with_rows(NLL, rows)
    times = times_file(tmp_path / "times.jsonl", names, (NLL, 10.0), [settings, (after, 6.0)])
    tune(home, "nll_loss_backward", "--trace", "small", "--no-llm", "--times", times, "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["exit"], found["candidates"]) == ("ACCEPTED", len(space.settings))
    assert Path(found["kernel"]).read_text() == after
    assert "BLOCK 1024, WARPS 4" in (home / "skills.jsonl").read_text()


def test_what_a_kernel_takes_is_told_without_a_gpu(home, capsys):
    tune(home, "sigmoid", "--trace", "small", "--explain")
    told = capsys.readouterr().out
    assert "Compiled for sm_90; not timed" in told and "registers, 0 spilled" in told and "of its warps" in told


@pytest.mark.parametrize(
    "words, said",
    [
        (["nosuch", "--trace", "small"], "nosuch"),
        (["sigmoid", "--trace", "nosuch"], "no trace 'nosuch'"),
        (["sigmoid", "--trace", "bare", "--times", "TIMES"], "holds no contents of any call"),
        (["relu", "--trace", "small", "--times", "TIMES"], "no recorded call of aten::relu"),
        (["sigmoid", "--trace", "small"], "platform sim: a kernel takes no time there that means anything"),
        (["sigmoid", "--trace", "small", "--platform", "cuda"], "this machine or its PyTorch"),
        (["sigmoid", "--trace", "small", "--calls", "0"], "--calls '0' is too small; use 1 or more"),
        (["sigmoid", "--trace", "small", "--minutes", "0"], "--minutes 0: nothing can be tried with that"),
        (["sigmoid", "--trace", "small", "--money", "1"], "--money 1: the price for tokens is unknown"),
        (["sigmoid", "--trace", "small", "--money", "1", "--prices", "x"], "--prices x: not two numbers"),
        (["sigmoid", "--trace", "small", "--no-llm", "--times", "TIMES"], "declares no SPACE"),
        (["sigmoid", "--trace", "small", "--times", "SKILLS"], "not a file of times"),
        (["sigmoid", "--trace", "small", "--times", "OTHER"], "format 'enable-times' version 9 is unknown"),
        (["sigmoid", "--trace", "small", "--times", "TIMES", "--llm", "nosuch"], "unknown LLM provider 'nosuch'"),
        (["sigmoid", "--trace", "small", "--times", "EMPTY"], "no times of kernels"),
    ],
)
def test_bad_input_is_one_line(home, tmp_path, capsys, words, said):
    files = {name: tmp_path / f"{name}.jsonl" for name in ("TIMES", "SKILLS", "OTHER", "EMPTY")}
    times_file(files["TIMES"], NAMES, (SIGMOID, 10.0), [])
    files["SKILLS"].write_text("[]\n")
    files["OTHER"].write_text('{"format": "enable-times", "version": 9}\n')
    files["EMPTY"].write_text('{"format": "enable-times", "version": 1}\n')
    tune(home, *[files.get(word, word) for word in words], expect=2)
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert said in line


@pytest.mark.parametrize("text", ['{"format": "enable-skills", "version": 7}\n', "nothing of the kind\n"])
def test_a_file_of_skills_that_is_not_known_is_told(home, tmp_path, capsys, text):
    (home / "skills.jsonl").write_text(text)
    times = times_file(tmp_path / "times.jsonl", NAMES, (SIGMOID, 10.0), [])
    tune(home, "sigmoid", "--trace", "small", "--times", times, expect=2)
    assert "pass --no-skills" in capsys.readouterr().err


@pytest.mark.gpu
def test_times_of_a_gpu(home, capsys):
    if not torch.cuda.is_available() or not compiles():
        pytest.skip("needs a CUDA device, and kernels compiled: pytest -m gpu, without TRITON_INTERPRET")
    tune(home, "sigmoid", "--trace", "small", "--platform", "cuda", "--explain")
    told = capsys.readouterr().out
    assert "us; the limit is" in told and "waves on" in told
