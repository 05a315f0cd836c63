"""What the README and the program tell a user to type works when it is typed: in order, in a fresh workspace."""

import ast
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from shared import without
from typer.main import get_command

from capture import sim
from enable.cli import app, run

sim.install()  # before the first backward of this process

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "tests" / "verify" / "corpus" / "honest" / "neg_zero_size_and_scalar.py"
TINY = [w for s in ("n_layer=1", "n_embd=16", "n_head=2", "block_size=8") for w in ("--set", s)]
# What makes a command short enough for a test, by how it begins.
SHORTER = {
    "capture nanogpt": ["--batch", "2", "--optimizer", "sgd", *TINY],
    "run nanogpt": ["--batch", "2", "--optimizer", "sgd", *TINY],
    "capture opinfo": ["--op", "exp", "--op", "nn.functional.celu", "--dtype", "float32"],
    "verify kernel.py": ["--limit", "2"],
    "verify gelu": ["--limit", "2"],
}
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 12)

    def forward(self, x):
        x = self.linear(x)
        RETURN

def make(device="cpu"):
    torch.manual_seed(0)
    model = Net().to(device)
    return model, torch.ones(3, 4).to(device), lambda m, b: m(b).sum(), torch.optim.SGD(model.parameters(), 0.1)
"""


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a line as in a shell, in a directory with kernel.py, known.py and lacking.py, two models of which the second
    needs an operator that has no kernel; returns the exit status and all that was printed."""
    monkeypatch.chdir(tmp_path)
    for name in ("ENABLE_WORKSPACE", "ENABLE_LIBRARY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENABLE_LIBRARY", str(without(["aten::celu"], tmp_path / "library")))
    shutil.copy(KERNEL, "kernel.py")
    attention = "return nn.functional.scaled_dot_product_attention(*x[None].chunk(3, -1))"
    Path("known.py").write_text(NET.replace("RETURN", attention))
    Path("lacking.py").write_text(NET.replace("RETURN", "return x + nn.functional.celu(x.detach(), 2.0)"))

    def type_(line, shorter=()):
        status, text = 0, ""
        for command in line.split(" && "):
            words = shlex.split(command, comments=True)
            assert words[0] == "enable", line
            status = run([*words[1:], *shorter])
            text += "".join(capsys.readouterr())
            if status:
                break
        return status, text

    yield type_
    for name in ("known", "lacking"):
        sys.modules.pop(name, None)


def commands_under(page, heading):
    """The lines of the first block of commands under a heading of a page."""
    _, _, rest = (ROOT / page).read_text().partition(heading)
    block = rest.partition("```bash\n")[2].partition("```")[0]
    lines = [line for line in block.splitlines() if line]
    assert lines and all(line.startswith("enable ") for line in lines)
    return lines


def type_all(typed, lines):
    """Type lines in order, each with the commands that it prints as next steps."""
    for line in lines:
        words = " ".join(shlex.split(line, comments=True)[1:3])
        status, text = typed(line, SHORTER.get(words, ()))
        assert status == 0, f"{line}\n{text}"
        for command in printed(text):
            assert typed(command)[0] == 0, f"{line}: {command}"


def test_the_quickstart_of_the_readme(typed):
    type_all(typed, commands_under("README.md", "\n## Quickstart\n"))
    assert Path("report.html").is_file()


@pytest.mark.timeout(900)
def test_the_tour(typed):
    type_all(typed, commands_under("docs/tour.md", "# A tour"))
    assert Path("calls.svg").is_file() and any(Path("DIR").iterdir())


_PRINTED = re.compile(
    r"(?:: |\b(?:next|again|missing|fails|accelerator) +)(enable [^;\n]*?)(?=;|$|\)| or pass |, and pass )",
    re.MULTILINE,
)


def printed(text):
    """The commands that a text tells to type, each once."""
    return list(dict.fromkeys(command.strip() for command in _PRINTED.findall(text)))


def test_every_command_that_is_printed(typed):
    """From the first recording of one's own model on; in a workspace of another name, which every command names."""
    one, two = "enable --workspace place ", " --workspace place"
    status, text = typed(f"{one}capture lacking:make --name own")
    (coverage,) = printed(text)
    assert coverage == f"{one}coverage own"
    status, text = typed(coverage)
    missing, refine, strong = sorted(printed(text), key=lambda command: (" verify " in command, " refine " in command))
    assert strong.startswith(f"{one}verify aten::"), strong
    status, text = typed(missing)
    (write,) = printed(text)
    assert status == 0 and write == f"{one}refine own --op aten::celu --llm manual"
    assert refine == f"{one}refine own --only-failing --llm manual"

    status, text = typed("enable refine own --only-failing" + two)
    assert status == 2 and text.count("\n") == 1 and "no language model is configured" in text, text
    assert not Path("place/dialogs").exists() and "OPENAI_API_KEY" in text and printed(text) == [refine]
    for command in (write, refine):
        status, text = typed(command)
        assert status == 0 and "WAITING" in text
    (again,) = printed(text)
    assert typed(again)[0] == 0
    status, text = typed("enable dialog list" + two)
    (answer,) = printed(text)
    Path("FILE").write_text("I would rather not.")
    status, text = typed(answer)
    assert status == 0 and printed(text) == [again]
    status, text = typed(again)
    assert status == 0 and "002-prompt.md" in text
    stop = typed("enable dialog list --json" + two)
    assert stop[0] == 0


def test_a_run_says_what_to_type_until_it_runs(typed):
    """A trace of the CPU does not hold all that the device asks for, and its name is taken."""
    assert typed("enable capture known:make --name known-make")[0] == 0
    told = []
    for _ in range(4):
        status, text = typed("enable run known:make --device sim")
        if status == 0:
            break
        (command,) = printed(text)
        told.append(command)
        assert typed(command)[0] == 0, command
    assert status == 0 and told, text
    status, text = typed("enable run lacking:make --device sim")
    (command,) = printed(text)
    assert status == 1 and "enable refine lacking-make --op aten::celu --llm manual" in command
    assert typed(command)[0] == 0 and "WAITING" in typed(command.split(" && ")[-1])[1]


def test_commands_that_the_source_names_exist():
    """In messages, and as the words of `Workspace.command` and `Session.command`."""
    named = set()
    for package in ("capture", "enable", "generate", "traces", "verify"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named.update(re.findall(r"(?:: |`)enable ([a-z]+)(?: ([a-z]+))?", node.value))
                called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                if called.endswith(".command") and called != "app.command":
                    words = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
                    named.update([(words[0], words[1] if words[1:] else "")] if words else [])
    assert len(named) > 20
    for command, second in sorted(named):
        found = get_command(app).commands[command]
        assert not second or second in getattr(found, "commands", [second]), (command, second)
