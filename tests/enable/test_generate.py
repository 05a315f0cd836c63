"""`enable generate` and `enable campaign` as a user types them, in this process but where it is killed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import program
import pytest
from shared import sampled

from enable.cli import run
from generate.journal import read_journal
from generate.recording import to_recording

pytestmark = pytest.mark.timeout(900)  # a campaign takes half a minute on two quiet cores
ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "enable"
NAMES = ("exp", "reciprocal")
SOURCES = {name: (ROOT / "generate" / "kernels" / "pointwise" / f"{name}.py").read_text() for name in NAMES}
RIGHT = {name: f"```python\n{source}```\n" for name, source in SOURCES.items()}
SLIPS = {"exp": ("tl.exp(x)", "tl.log(x)"), "reciprocal": ("x.shape, 1,", "x.shape, 2,")}
WRONG = {name: text.replace(*SLIPS[name]) for name, text in RIGHT.items()}


def enable(home, *arguments, url=None):
    without = {name: None for name in os.environ if name.startswith("OPENAI_")}
    endpoint = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test"} if url else {}
    return program.enable(*arguments, cwd=home, ENABLE_LIBRARY="library", **without | endpoint)


def started(home, *arguments, **options):
    """A process of its own, to be killed."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")} | {"ENABLE_LIBRARY": "library"}
    return subprocess.Popen([PROGRAM, *arguments], cwd=home, env=own, **options)


def generate(home, *arguments, **options):
    return enable(home, "generate", "--query", "lacking in opinfo", *arguments, **options)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, module_server):
    """A workspace with a trace of two operators of OpInfo, a library without their kernels, and recorded dialogs."""
    home = tmp_path_factory.mktemp("generate")
    shutil.copytree(ROOT / "generate" / "kernels", home / "library")
    for name in NAMES:
        (home / "library" / "pointwise" / f"{name}.py").unlink()
    chosen = [word for name in NAMES for word in ("--op", name)]
    assert enable(home, "capture", "opinfo", *chosen, "--dtype", "float32").returncode == 0
    talk = home / "talk"
    shutil.copytree(home / ".enable", talk / ".enable")
    shutil.copytree(home / "library", talk / "library")
    rows = json.loads(generate(talk, "--dry-run", "--json").stdout)["operators"]
    order = [row["overload"].removeprefix("aten::") for row in rows]
    module_server.replies = [text for name in order for text in (WRONG[name], RIGHT[name])]
    result = generate(talk, "--llm", "openai", "--model", "m", "--workers", "1", "--json", url=module_server.url)
    assert result.returncode == 0, result.stderr
    (home / "first.json").write_text(result.stdout)
    (home / "recordings").mkdir()
    for journal in (talk / ".enable" / "campaigns").rglob("journal.jsonl"):
        to_recording(journal, home / "recordings" / f"{journal.parents[1].name}.jsonl")
    shutil.copy(talk / ".enable" / "verdicts.sqlite", home / ".enable")  # so that few tests wait for the same verdicts
    shutil.rmtree(talk)
    (home / "campaign.toml").write_text(
        'name = "offline"\nquery = "lacking in opinfo"\nworkers = 2\n[model]\nrecordings = "recordings"\n'
    )
    return home


@pytest.fixture
def home(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(prepared, tmp_path_factory):
    """Where the campaign ran to its end, and what it printed."""
    home = tmp_path_factory.mktemp("undisturbed")
    shutil.copytree(prepared, home, dirs_exist_ok=True)
    result = enable(home, "generate", "--config", "campaign.toml", "--json")
    assert result.returncode == 0, result.stderr
    return home, json.loads(result.stdout)


def what_remains(home, name="offline"):
    """The library, the journals' events and the counts of a campaign: what has to be the same however it came about."""
    kernels = {p.name: p.read_text() for p in (home / ".enable" / "kernels").glob("*/*.py")}
    place = home / ".enable" / "campaigns" / name
    events = {
        p.parents[1].name: [r["event"] for r in read_journal(p) if "event" in r] for p in place.rglob("journal.jsonl")
    }
    rows = {row["overload"]: row for row in map(json.loads, (place / "results.jsonl").read_text().splitlines())}
    return kernels, events, {o: (row["exit"], row["calls"], row["dialogs"]) for o, row in rows.items()}


def test_from_the_prompt_to_the_library(prepared):
    found = json.loads((prepared / "first.json").read_text())
    assert found["exits"] == {"PASSED": 2} and found["calls"] == 4
    assert {row["category"] for row in found["operators"]} == {"Elementwise"}
    assert all(row["seconds"]["tests"] > 0 for row in found["operators"])


def test_offline_from_a_file_and_again_it_has_nothing_to_do(undisturbed):
    home, found = undisturbed
    assert (found["campaign"], found["exits"], found["calls"]) == ("offline", {"PASSED": 2}, 4)
    kernels, events, _ = what_remains(home)
    assert kernels == {f"{name}.py": SOURCES[name] for name in NAMES}
    assert all(e.count("ANSWERED") == 2 for e in events.values())
    before = what_remains(home)
    again = enable(home, "generate", "--config", "campaign.toml", "--json")
    assert json.loads(again.stdout) == found and what_remains(home) == before
    report = json.loads(enable(home, "campaign", "report", "--json", "--plot", "drawn.svg").stdout)
    assert report["campaigns"][0]["categories"] == {"Elementwise": {"total": 2, "passed": 2}}
    assert report["campaigns"][0]["passed_within_calls"] == {"1": 0.0, "2": 100.0}
    ((kind, fed_back),) = report["campaigns"][0]["feedback"].items()
    assert kind in ("LINT", "CRASH", "WRONG", "COMPILE_ERROR")
    assert fed_back == {"answers": 2, "answered_again": 2, "got_further": 2}
    assert "<svg" in (home / "drawn.svg").read_text()
    assert "offline" in enable(home, "campaign", "list").stdout
    told = json.loads(enable(home, "report", "--campaign", "offline", "--json").stdout)
    assert told["models"] == [] and told["campaigns"][0]["within"] == [0.0, 100.0]
    assert {(d["overload"], d["stage"]) for d in told["dialogs"]} == {(f"aten::{name}", "PASSED") for name in NAMES}
    answers = [turn for turn in told["dialogs"][0]["turns"] if turn["role"].startswith("answer")]
    assert [bool(turn["diff"]) for turn in answers] == [False, True] and answers[0]["then"]


@pytest.mark.parametrize("times", sampled([1, 2], [1]))
def test_killed_at_random_moments_it_goes_on_to_the_same_end(home, undisturbed, times):
    """benchmarks/campaign.py does this 30 times."""
    (home / ".enable" / "verdicts.sqlite").unlink()
    draw, kills = random.Random(5), 0
    while kills < times:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = started(home, "generate", "--config", "campaign.toml", **quiet, start_new_session=True)
        time.sleep(2 + draw.random() * 6)
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills
    assert enable(home, "generate", "--config", "campaign.toml").returncode == 0
    assert what_remains(home) == what_remains(undisturbed[0])


def test_a_campaign_of_other_settings_is_refused_and_may_begin_anew(home):
    assert enable(home, "generate", "--config", "campaign.toml", "--most", "1").returncode == 0
    result = enable(home, "generate", "--config", "campaign.toml")
    assert result.returncode == 2 and "begun with other settings (most)" in result.stderr
    assert result.stderr.count("\n") == 1
    result = enable(home, "generate", "--config", "campaign.toml", "--restart", "--json")
    assert json.loads(result.stdout)["total"] == 1  # the other has a kernel now
    assert sorted(p.name for p in (home / ".enable" / "campaigns").iterdir()) == ["offline", "offline.old-1"]


def test_without_acceptance_the_library_stays_as_it_is(home):
    (home / "campaign.toml").write_text(
        (home / "campaign.toml").read_text().replace("workers", "accept = false\nworkers")
    )
    result = enable(home, "generate", "--config", "campaign.toml", "--json")
    assert json.loads(result.stdout)["exits"] == {"PASSED": 2}
    assert not (home / ".enable" / "kernels").exists()


def test_a_budget_ends_it_and_more_of_it_goes_on(home):
    text = (home / "campaign.toml").read_text()
    (home / "campaign.toml").write_text(text.replace("workers = 2", "workers = 1") + "[budget]\ncalls = 3\n")
    result = enable(home, "generate", "--config", "campaign.toml", "--json")
    assert result.returncode == 1
    found = json.loads(result.stdout)
    assert found["calls"] == 3 and found["exits"]["PASSED"] == 1
    assert any("budget of 3 calls is spent" in row["detail"] for row in found["operators"])
    (home / "campaign.toml").write_text(text)
    found = json.loads(enable(home, "generate", "--config", "campaign.toml", "--json").stdout)
    assert found["exits"] == {"PASSED": 2} and found["calls"] == 4


def test_a_wrapper_may_call_what_is_verified_if_that_is_asked_for(home, server):
    assert enable(home, "verify", "aten::mul.Tensor", "--cases", "trace:opinfo").returncode == 0
    calling = RIGHT["reciprocal"].replace("import triton\n", "import torch\nimport triton\n", 1)
    calling = calling.replace(", *, out=None", "").replace(", out=out", "")
    answer = "elementwise(reciprocal, self, to_float=True)"
    calling = calling.replace(answer, f"torch.ops.aten.mul.Tensor({answer}, 1.0)")
    assert "mul.Tensor" in calling
    server.replies = [calling, calling]
    asked = ["--op", "aten::reciprocal", "--llm", "openai", "--model", "m", "--dialogs", "1", "--calls", "1", "--json"]
    refused = json.loads(enable(home, "generate", *asked, url=server.url).stdout)
    assert refused["exits"] == {"OUT_OF_DIALOGS": 1}
    passed = json.loads(enable(home, "generate", *asked, "--self-consistent", url=server.url).stdout)
    assert passed["exits"] == {"PASSED": 1}, passed
    prompts = [request["messages"][-1]["content"] for request in server.requests]
    assert ["`torch.ops.aten.mul.Tensor`" in prompt for prompt in prompts] == [False, True]


def test_a_dry_run_asks_and_writes_nothing(home):
    before = sorted(p for p in home.rglob("*"))
    result = enable(home, "generate", "--config", "campaign.toml", "--dry-run")
    assert result.returncode == 0
    assert "aten::exp" in result.stdout and "2 operators (2 Elementwise)" in result.stdout
    after = [p for p in home.rglob("*") if "cache" not in p.parts and "verdicts" not in p.name]
    assert set(after) <= set(before)


@pytest.mark.parametrize(
    "arguments, told",
    [
        ([], "operators or query: name one of the two"),
        (["--query", "all of opinfo"], "is none of: failing in TRACE"),
        (["--query", "lacking in dlrm"], "no trace 'dlrm'"),
        (["--op", "expp"], "'expp' is neither an overload"),
        (["--op", "aten::nothing"], "aten::nothing"),
        (["--op", "exp", "--engine", "slurm"], "'local' or 'ray'"),
        (["--op", "exp", "--name", "../x"], "has to be letters"),
        (["--op", "exp", "--llm", "oracle"], "unknown LLM provider 'oracle'"),
        (["--op", "exp", "--platform", "tpu"], "unknown platform 'tpu'"),
        (["--config", "none.toml"], "none.toml: cannot be read as TOML"),
        (["--query", "lacking in opinfo", "--category", "Pointwise"], "'Pointwise' is none of those of opinfo"),
    ],
)
def test_bad_input_is_told_in_one_line(home, arguments, told, monkeypatch, capsys):
    monkeypatch.chdir(home)
    monkeypatch.setenv("ENABLE_LIBRARY", "library")
    status, stderr = run(["generate", *arguments]), capsys.readouterr().err
    assert status == 2 and told in stderr, stderr
    assert stderr.startswith("enable: ") and stderr.count("\n") == 1
    assert not (home / ".enable" / "campaigns").exists()


def test_ray_comes_to_the_same_end_also_when_a_worker_is_killed(home, undisturbed):
    pytest.importorskip("ray")
    with open(home / "told", "w") as told:
        words = ("generate", "--config", "campaign.toml", "--engine", "ray")
        process = started(home, *words, stdout=told, stderr=told)
        victim, journals = None, home / ".enable" / "campaigns"
        while victim is None or not list(journals.rglob("journal.jsonl")):  # one is at work
            assert process.poll() is None, (home / "told").read_text()
            time.sleep(0.02)
            victim = next((p for p in Path("/proc").glob("[0-9]*") if words_of(p).startswith(b"ray::_hold")), None)
        os.kill(int(victim.name), signal.SIGKILL)
        assert process.wait(300) == 0, (home / "told").read_text()
    assert what_remains(home) == what_remains(undisturbed[0])


def words_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""  # it has ended
