"""`enable refine` as a user types it, against a real HTTP endpoint in this process.

The program runs in this process too, but where it is interrupted."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
import torch
from program import enable

from capture import Recorder

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "enable"
GELU = (ROOT / "generate/kernels/pointwise/gelu.py").read_text()
RIGHT = f"Here it is.\n\n```python\n{GELU}```\n"
WRONG = RIGHT.replace("0.5 * x * (1 + tl.erf", "0.6 * x * (1 + tl.erf")
CHEAT = RIGHT.replace(" else exact, self,", " else exact, torch.nn.functional.gelu(self),")
assert RIGHT not in (WRONG, CHEAT)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A workspace with the trace of a small net, its verdicts, and a library without gelu."""
    home = tmp_path_factory.mktemp("refine")
    shutil.copytree(ROOT / "generate" / "kernels", home / "library")
    (home / "library" / "pointwise" / "gelu.py").unlink()
    torch.manual_seed(0)
    x, weight = torch.randn(16, 32), torch.randn(32, 24)
    with Recorder(home / ".enable" / "traces" / "net.trace") as recorder:
        torch.nn.functional.gelu(x @ weight)
        recorder.step()
    enable("coverage", "net", cwd=home, **environment())
    return home


@pytest.fixture
def home(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return tmp_path


GELU_BY_TEST = ["refine", "net", "--op", "aten::gelu", "--llm", "openai", "--model", "test"]


def environment(url=None, key="sk-test"):
    """What differs from this process's; None is taken away."""
    without = {name: None for name in os.environ if name.startswith("OPENAI_")}
    return without | {"ENABLE_LIBRARY": "library", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": key}


def refine(home, *arguments, **env):
    return enable(*GELU_BY_TEST, *arguments, cwd=home, **environment(**env))


def test_from_missing_to_covered(home, server):
    server.replies = ["I would rather not.", CHEAT, WRONG, RIGHT]
    result = refine(home, "--json", url=server.url)
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)["operators"]
    assert (found["overload"], found["exit"], found["dialogs"], found["calls"]) == ("aten::gelu", "PASSED", 1, 4)
    assert (home / found["kernel"]).read_text() == GELU
    told = [request["messages"][-1]["content"] for request in server.requests]
    assert "Write the kernel file for `aten::gelu`" in told[0]
    assert "```python" in told[1] and "torch.nn.functional.gelu" in told[2] and "elements wrong" in told[3]
    coverage = enable("coverage", "net", "--json", cwd=home, **environment())
    subset = json.loads(coverage.stdout)["opinfo_subset"]
    assert subset["matched"] == subset["passed_after_refinement"] == subset["passed_out_of_the_box"] + 1
    assert "sk-test" not in "".join(p.read_text() for p in (home / ".enable" / "dialogs").rglob("*") if p.is_file())


def test_nothing_to_refine(home):
    shutil.copy(ROOT / "generate/kernels/pointwise/gelu.py", home / "library" / "pointwise")
    result = enable("refine", "--only-failing", "--llm", "manual", cwd=home, **environment())
    assert result.returncode == 0 and "nothing to refine" in result.stdout


def test_out_of_dialogs_is_exit_1_and_no_kernel(home, server):
    server.replies = [WRONG, WRONG, WRONG]
    result = refine(home, "--dialogs", "1", "--calls", "3", url=server.url)
    assert result.returncode == 1 and "OUT_OF_DIALOGS" in result.stdout
    assert len(server.requests) == 3 and not (home / ".enable" / "kernels").exists()


@pytest.mark.parametrize(
    "env, words",
    [({"url": "http://127.0.0.1:9/v1"}, ["127.0.0.1:9"]), ({"key": None}, ["OPENAI_API_KEY"])],
    ids=["endpoint down", "no key"],
)
def test_no_model_is_one_line_and_exit_2(home, env, words):
    result = refine(home, "--json", **env)
    assert result.returncode == 2 and not (home / ".enable" / "kernels").exists()
    lines = [line for line in result.stderr.splitlines() if line.startswith("enable: ")]
    assert len(lines) == 1 and all(word in lines[0] for word in words), result.stderr


def test_interrupted_and_resumed_without_asking_again(home, server):
    blocked = threading.Event()

    def slow():
        blocked.set()
        time.sleep(5)
        return RIGHT

    server.replies = [WRONG, slow, RIGHT]
    own = {name: value for name, value in (os.environ | environment(server.url)).items() if value is not None}
    running = subprocess.Popen(
        [PROGRAM, *GELU_BY_TEST, "--restart"],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=own,
    )
    assert blocked.wait(120)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 130 and "Traceback" not in stderr
    typed = stderr.splitlines()[-1].partition("run: ")[2]
    assert typed == shlex.join(["enable", *GELU_BY_TEST]), stderr
    assert refine(home, url=server.url).returncode == 0
    first = [request["messages"] for request in server.requests]
    assert len(first) == 3 and first[1] == first[2], "only the call that was cut off is made again"


GIVEN = {
    "--llm": "manual",
    "--base-url": "http://127.0.0.1:9/v1",
    "--dialogs": "2",
    "--calls": "4",
    "--temperature": "0.5",
    "--library": "my library",
}


def test_the_command_of_a_waiting_run_goes_on_with_that_run(home):
    """Limits are in the journal's header, so that a command without them would begin another run."""
    (home / ".enable").rename(home / "space")
    (home / "library").rename(home / "my library")
    given = [word for option in GIVEN.items() for word in option]
    command = ["--workspace", "space", "refine", "--only-failing", "--restart", *given, "--json"]

    def run(command):
        result = enable(*command, cwd=home, **environment() | {"ENABLE_LIBRARY": None})
        assert result.returncode == 0, result.stderr
        (found,) = json.loads(result.stdout)["operators"]
        return found

    waiting = run(command)
    typed = shlex.split(waiting["detail"].partition("then run: ")[2])
    assert waiting["exit"] == "WAITING"
    assert typed == ["enable", "--workspace", "space", "refine", *given, "--json", "--op", "aten::gelu"]
    (run_directory,) = (home / "space" / "dialogs" / "aten.gelu").iterdir()
    (run_directory / "001-answer.md").write_text(RIGHT)
    passed = run(typed[1:])
    assert (passed["exit"], passed["calls"]) == ("PASSED", 1)
    assert list(run_directory.parent.iterdir()) == [run_directory]


def test_defaults_are_not_retyped(home):
    result = refine(home, "--llm", "manual", "--calls", "15", "--temperature", "1", "--platform", "sim", "--json")
    (found,) = json.loads(result.stdout)["operators"]
    expected = "enable refine net --llm manual --model test --json --op aten::gelu"
    assert found["detail"].partition("then run: ")[2] == expected


def test_a_kernel_of_an_earlier_run_is_judged_again_before_it_is_accepted(home, server):
    server.replies = [RIGHT]
    assert refine(home, url=server.url).returncode == 0
    (journal,) = (home / ".enable" / "dialogs").rglob("journal.jsonl")
    (kernel,) = (home / ".enable" / "kernels").glob("*/*.py")
    kernel.unlink()
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    lines = []
    for record in records:  # as if an older judge had let a wrong kernel pass
        del record["crc"]
        body = json.dumps(record, ensure_ascii=True, sort_keys=True)
        body = body.replace("0.5 * x * (1 + tl.erf", "0.6 * x * (1 + tl.erf")
        lines.append(f'{body[:-1]}, "crc": "{zlib.crc32(body.encode()):08x}"}}')
    journal.write_text("\n".join(lines) + "\n")
    server.replies = [RIGHT]
    result = refine(home, url=server.url)
    assert result.returncode == 0 and "does not pass today" in result.stderr
    assert kernel.read_text() == GELU and len(server.requests) == 2


def test_a_file_that_claims_more_than_was_asked_is_refused(home, server):
    greedy = RIGHT.replace('OVERLOADS = ("aten::gelu",)', 'OVERLOADS = ("aten::gelu", "aten::neg")')
    greedy = greedy.replace('"""aten::gelu(', '"""aten::neg(Tensor self) -> Tensor\naten::gelu(')
    server.replies = [greedy, RIGHT]
    assert refine(home, url=server.url).returncode == 0
    assert "must list exactly aten::gelu" in server.requests[1]["messages"][-1]["content"]


def test_a_prompt_tells_of_recorded_dtypes_and_numbers(home):
    """Also of calls without floats; and where PyTorch gives a number in the place of a tensor."""
    x = torch.ones(3)
    with Recorder(home / ".enable" / "traces" / "mixed.trace"):
        for dtype in (torch.float32, torch.int64):
            torch.sgn(torch.tensor([-1, 0, 2], dtype=dtype))
            torch.index_select(x, 0, torch.tensor([1], dtype=torch.int32))
        _ = x * 2.5
    for name in ("pointwise/sgn.py", "indexing/index_select.py", "pointwise/mul.py"):
        (home / "library" / name).unlink()
    enable("refine", "mixed", "--only-failing", "--llm", "manual", "--few-cases", cwd=home, **environment())
    prompts = {p.parents[1].name: p.read_text() for p in (home / ".enable" / "dialogs").rglob("001-prompt.md")}
    assert "At least float32, int64.\n" in prompts["aten.sgn"]
    assert "At least float32.\n" in prompts["aten.index_select"]
    told = "\n`other` may come as a Python number where the schema has a tensor.\n"
    assert [name for name in sorted(prompts) if told in prompts[name]] == ["aten.mul.Tensor"]
