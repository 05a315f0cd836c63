"""The program as a user types it."""

import ast
import contextlib
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from program import enable
from typer.main import get_command

from capture import Recorder
from enable.cli import app
from enable.help import SECTIONS
from enable.options import LLM_HELP
from enable.reference import commands, help_of, reference
from generate.llm import load_provider, provider_names
from traces import UserError
from traces.errors import did_you_mean

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A directory with a workspace that holds a small nanoGPT trace."""
    directory = tmp_path_factory.mktemp("captured")
    result = enable("capture", "nanogpt", *SMALL, "--optimizer", "adamw-fused", cwd=directory)
    assert result.returncode == 0, result.stderr
    return directory


@pytest.fixture(scope="module")
def small(captured):
    """That directory with a trace of three operators beside it."""
    torch.manual_seed(0)
    x, weight = torch.randn(6, 8), torch.randn(8, 4)
    with Recorder(captured / ".enable" / "traces" / "small.trace") as recorder:
        torch.nn.functional.gelu(x.mm(weight)).view(-1)
        recorder.step()
    return captured


SMALL = ["--batch", "2", "--set", "n_layer=1", "--set", "n_embd=32", "--set", "n_head=2", "--set", "block_size=16"]


def assert_user_error(result, *words):
    """Exit status 2, one line on stderr that holds the words, nothing on stdout; on a busy machine also progress."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not re.search(r"  \d+ of \d+  \d+:\d\d$", line)]
    assert len(lines) == 1 and lines[0].startswith("enable: "), result.stderr
    for word in words:
        assert word in result.stderr


def test_reference_page_is_what_help_prints():
    page = ROOT / "docs" / "cli.md"
    assert page.read_text() == reference(), "the help texts changed: make docs"


def test_help_lists_every_command_under_one_heading():
    named = [name for names in SECTIONS.values() for name in names]
    assert sorted(named) == sorted(get_command(app).commands), "a command is missing from enable.help.SECTIONS"


@pytest.mark.parametrize("words", [(), ("trace",), ("library",), ("campaign",), ("dialog",), ("platform",)])
def test_summaries_fit_into_80_columns(words, monkeypatch):
    monkeypatch.setattr("enable.reference._WIDTH", "80")
    usage, _, rest = help_of(*words).partition("\n")
    assert "COMMAND [ARGS]..." in usage and "..." not in rest
    rows = [line for line in rest.split("\n\nOptions:")[1].split("\n") if re.match("  [a-z]+  ", line)]
    group = get_command(app) if not words else get_command(app).commands[words[0]]
    assert {row.split()[0] for row in rows} == set(group.commands)
    assert all(len(row) <= 80 and row.endswith(".") for row in rows), rows  # a summary that is wrapped has no full stop


@pytest.mark.parametrize("words", commands()[1:], ids=" ".join)
def test_examples_in_help_are_commands_that_exist(words):
    command = get_command(app)
    for word in words:
        command = command.commands[word]
    lines = command.epilog.partition("Examples:\n")[2].split("\n")
    assert 2 <= len(lines) <= 6 and all(len(line) <= 80 for line in command.epilog.split("\n"))
    for purpose, example in zip(lines[::2], lines[1::2], strict=True):
        assert re.fullmatch(r"  # [A-Z].*[^.]\.", purpose)
        if example in ('  eval "$(enablekit shell)"', "  enablekit shell fish | source"):
            continue
        program, *arguments = shlex.split(example)
        found, name = get_command(app), program
        while hasattr(found, "commands"):
            name, *arguments = arguments
            found = found.commands[name]
        assert program == "enable"
        found.make_context(name, arguments)  # raises if an option does not exist


def test_help_names_the_providers_that_errors_name():
    with pytest.raises(UserError) as raised:
        load_provider("opnai")
    listed = str(raised.value).rpartition("choose from ")[2].split(", ")
    assert re.findall(r"(\w+) \(", LLM_HELP) == provider_names() == listed


MISSPELT = {
    "covrage": "coverage",
    "coverage small --plaform sim": "--platform",
    "coverage smal": "small",
    "coverage small --platform siim": "sim",
    "verify gelo": "aten::gelu",
    "tune gelo --trace small": "aten::gelu",
    "library show gelo": "aten::gelu",
    "campaign report frist": "first",
    "dialog show gelu --campaign frist": "first",
    "capture nanogpt --set n_layr=2": "n_layer",
    "capture nanogpt --device cdua": "cuda",
    "capture nanogpt --values ful": "full",
    "export out --unverified --format packge": "package",
    "trace export small --format chrme": "chrome",
    "trace import x --format chakr --out y": "chakra",
    "trace show small --by phse": "phase",
    "coverage small --missing --by tme": "time",
    "coverage small --engine lcal": "local",
    "verify gelu --cases opinf": "opinfo",
    "verify gelu --without lnt": "lint",
    "conformance opinf": "opinfo",
    "conformance opinfo --checks forwrd": "forward",
    "run nanogpt --device smi": "sim",
}


@pytest.mark.parametrize("words", MISSPELT)
def test_a_misspelt_name_is_answered_by_the_nearest(small, words):
    (small / ".enable" / "campaigns" / "first" / "dialogs").mkdir(parents=True, exist_ok=True)
    result = enable(*words.split(), cwd=small)
    assert_user_error(result)
    (suggested,) = re.findall(r", did you mean (.*?)\?", result.stderr)
    assert MISSPELT[words] in suggested.split(" or ")


def test_a_name_that_is_near_none_gets_no_suggestion():
    assert did_you_mean("xyzzy", ["coverage", "trace"]) == ""


def test_coverage_json(small):
    result = enable("coverage", "small", "--json", cwd=small)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["overloads"]["percent"] == 100
    assert found["calls"]["covered"] == found["calls"]["total"] > 0
    subset = found["opinfo_subset"]
    assert 0 < subset["passed_out_of_the_box"] == subset["passed_after_refinement"] == subset["matched"]
    rows = {row["overload"]: row for row in found["rows"]}
    fields = {"overload", "kind", "calls", "signatures", "cases", "kernel", "origin", "outcome", "state", "detail"}
    assert set(rows["aten::mm"]) == fields | {"verdict", "evidence", "independent", "failing", "again", "of_cpus"}
    assert rows["aten::mm"]["kernel"] == "generate/kernels/matmul/mm.py"
    assert rows["aten::view"]["outcome"] is None and rows["aten::view"]["kind"] == "view"


def test_second_coverage_judges_nothing(small):
    enable("coverage", "small", cwd=small)
    store = small / ".enable" / "verdicts.sqlite"

    def newest():
        with contextlib.closing(sqlite3.connect(store)) as database:
            return database.execute("SELECT max(created), count(*) FROM verdicts").fetchone()

    before = newest()
    assert enable("coverage", "small", cwd=small).returncode == 0
    assert newest() == before


def test_a_missing_kernel_is_not_covered(small, tmp_path):
    library = tmp_path / "library"
    shutil.copytree(ROOT / "generate" / "kernels", library)
    (library / "pointwise" / "gelu.py").unlink()
    result = enable("coverage", "small", "--json", "--library", library, cwd=small)
    row = next(r for r in json.loads(result.stdout)["rows"] if r["overload"] == "aten::gelu")
    assert (row["kernel"], row["outcome"], row["state"]) == (None, None, "no kernel")
    assert "enable refine small --op aten::gelu" in row["detail"]


def test_trace_show_and_verify(captured):
    shown = json.loads(enable("trace", "show", "nanogpt", "--json", cwd=captured).stdout)
    assert list(shown["phases"]) == ["forward", "loss", "backward", "clip", "optimizer"]
    assert sum(p["calls"] for p in shown["phases"].values()) == shown["calls"]
    verified = enable("trace", "verify", "nanogpt", cwd=captured)
    assert verified.returncode == 0 and "every comparable call is bit-exact" in verified.stdout
    assert "aten::_fused_adamw_" in enable("trace", "show", "nanogpt", cwd=captured).stdout


def test_a_damaged_trace_fails_verification_in_one_line(captured, tmp_path):
    shutil.copytree(captured / ".enable", tmp_path / ".enable")
    shard = min((tmp_path / ".enable" / "traces" / "nanogpt.trace").glob("blobs-*"))  # there are more where it paused
    data = bytearray(shard.read_bytes())
    data[-100] ^= 1
    shard.write_bytes(data)
    assert_user_error(enable("trace", "verify", "nanogpt", cwd=tmp_path), "blobs-00000.safetensors")


BAD = {
    "unknown model": (["capture", "nanogtp"], ["nanogtp", "nanogpt", "dlrm", "enable models"]),
    "unknown setting": (["capture", "nanogpt", "--set", "layers=4"], ["layers", "n_layer"]),
    "setting without value": (["capture", "nanogpt", "--set", "n_layer"], ["n_layer", "NAME=VALUE"]),
    "setting of another type": (["capture", "nanogpt", "--set", "n_layer=x"], ["n_layer", "x"]),
    "unknown optimizer": (["capture", "nanogpt", "--optimizer", "adam"], ["adam", "adamw-fused", "sgd"]),
    "unknown device": (["capture", "nanogpt", "--device", "tpu9"], ["tpu9", "cpu"]),
    "no memory for it": (["capture", "nanogpt", "--batch", "9999999999999", "--out", "huge"], ["nanogpt", "memory"]),
    "no finite number": (["capture", "nanogpt", "--set", "lr=inf"], ["lr", "inf"]),
    "a number beyond 64 bits": (["capture", "nanogpt", "--batch", "9" * 30], ["batch"]),
    "a device of no memory": (["capture", "nanogpt", "--device", "meta"], ["meta", "cpu"]),
    "an empty library": (["coverage", "nanogpt", "--library", "."], ["no kernel files", "--library"]),
    "a view": (["refine", "nanogpt", "--op", "aten::view"], ["aten::view", "needs a kernel"]),
    "an empty operator": (["refine", "nanogpt", "--op", ""], ["--op"]),
    "nothing to record": (["dialog", "record", "aten::mm", "--out", "mm.jsonl"], ["aten::mm", "enable dialog list"]),
    "record over a file": (["dialog", "record", "aten::mm", "--out", ".enable"], [".enable", "exists"]),
    "no steps": (["capture", "nanogpt", "--steps", "0"], ["0"]),
    "no trace": (["coverage", "dlrm"], ["dlrm", "enable capture dlrm"]),
    "no trace to show": (["trace", "show", "resnet"], ["resnet", "traces here: nanogpt", "enable models"]),
    "no trace to refine": (["refine", "dlrm", "--only-failing"], ["dlrm", "enable capture dlrm"]),
    "no such library": (["coverage", "nanogpt", "--library", "nowhere"], ["nowhere", "--library"]),
    "unknown platform": (["coverage", "nanogpt", "--platform", "tpu"], ["tpu", "sim"]),
    "unknown option": (["coverage", "--verbose"], ["--verbose", "enable coverage --help"]),
    "unknown command": (["cover"], ["cover", "coverage", "enable --help"]),
    "nothing to refine named": (
        ["refine", "nanogpt"],
        ["nanogpt: no operator", "--op NAME", "refine nanogpt --only"],
    ),
    "nothing to refine in any trace": (["refine"], ["all traces: no operator", "--op NAME", "refine --only-failing"]),
    "misspelt trace to refine": (["refine", "nanogp"], ["'nanogp'", "did you mean nanogpt"]),
    "a file as a trace": (["coverage", "no.trace"], ["no.trace: this file is not a trace", "enable trace list"]),
    "a directory as a trace": (["trace", "show", ".enable"], [".enable: this directory is not a trace"]),
    "an operator near to none": (
        ["capture", "opinfo", "--op", "zzz"],
        ["'zzz'; write it like mm or nn.functional.gelu"],
    ),
    "a limit of 0": (["verify", "gelu", "--limit", "0"], ["--limit '0' is too small; use 1 or more"]),
    "a limit in letters": (["verify", "gelu", "--limit", "x"], ["--limit 'x' is not a whole number"]),
    "no calls": (["refine", "nanogpt", "--calls", "0"], ["--calls '0' is too small; use 1 or more"]),
    "dialogs in letters": (["refine", "nanogpt", "--dialogs", "x"], ["--dialogs 'x' is not a whole number"]),
    "too cold": (["refine", "nanogpt", "--temperature", "-1"], ["--temperature '-1' is too small; use 0 or more"]),
    "a batch in letters": (["capture", "nanogpt", "--batch", "x"], ["--batch 'x' is not a whole number"]),
    "unknown phase": (["capture", "nanogpt", "--out", "p", "--phase", "forwrd"], ["'forwrd'", "did you mean forward"]),
    "pattern of no operator": (["capture", "nanogpt", "--out", "p", "--ops", "aten::zzz*"], ["aten::zzz*", "--ops"]),
    "unknown provider": (
        ["refine", "nanogpt", "--only-failing", "--llm", "gpt"],
        ["gpt", "openai", "replay", "manual"],
    ),
    "unknown operator": (["refine", "nanogpt", "--op", "aten::nope"], ["aten::nope"]),
    "operator not called": (["refine", "nanogpt", "--op", "aten::conv2d"], ["aten::conv2d"]),
}


@pytest.mark.parametrize("arguments, words", BAD.values(), ids=BAD.keys())
def test_bad_input(captured, arguments, words):
    (captured / "no.trace").touch()
    before = sorted(captured.rglob("*"))
    assert_user_error(enable(*arguments, cwd=captured), *words)
    left = [p for p in sorted(captured.rglob("*")) if p not in before and "cache" not in p.parts]
    assert not [p for p in left if "verdicts" not in p.name]


@pytest.mark.parametrize("command", ["coverage", "capture"])
@pytest.mark.parametrize("workspace", ["/proc/nope", "a-file", "a-file/below"])
def test_a_workspace_that_cannot_be_made(tmp_path, workspace, command):
    (tmp_path / "a-file").write_text("kept")
    result = enable("--workspace", workspace, command, "nanogpt", cwd=tmp_path)
    assert_user_error(result, f"workspace {workspace} ", "--workspace DIR")
    assert (tmp_path / "a-file").read_text() == "kept"


def test_existing_trace_is_kept_without_force(captured):
    manifest = captured / ".enable" / "traces" / "nanogpt.trace" / "manifest.json"
    before = manifest.read_bytes()
    assert_user_error(enable("capture", "nanogpt", cwd=captured), "exists", "--force", "--out")
    assert manifest.read_bytes() == before


def test_a_trace_elsewhere_is_named_by_its_path(tmp_path):
    shown = enable("capture", "nanogpt", *SMALL, "--out", "steps/mine", cwd=tmp_path)
    assert "enable coverage steps/mine" in shown.stdout
    assert "every comparable call is bit-exact" in enable("trace", "verify", "steps/mine", cwd=tmp_path).stdout
    assert not (tmp_path / ".enable").exists()


def test_newer_trace_format_is_refused_by_name(captured, tmp_path):
    shutil.copytree(captured / ".enable", tmp_path / ".enable")
    manifest = tmp_path / ".enable" / "traces" / "nanogpt.trace" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    assert_user_error(enable("coverage", "nanogpt", cwd=tmp_path), "99", "upgrade")


def test_a_kernel_file_that_does_not_parse(captured, tmp_path):
    library = tmp_path / "library"
    shutil.copytree(ROOT / "generate" / "kernels", library)
    (library / "pointwise" / "gelu.py").write_text("def wrapper(:\n")
    assert_user_error(enable("coverage", "nanogpt", "--library", library, cwd=captured), "gelu.py", "line 1")


def test_a_file_that_is_no_verdict_store(captured, tmp_path):
    shutil.copytree(captured / ".enable" / "traces", tmp_path / ".enable" / "traces")
    (tmp_path / ".enable" / "verdicts.sqlite").write_text("not a database, but long enough to be looked at\n" * 40)
    assert_user_error(enable("coverage", "nanogpt", cwd=tmp_path), "verdicts.sqlite", "remove")


def test_python_dash_m_works_beside_other_packages_of_the_same_names(tmp_path):
    for package in ("models", "verify", "capture"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise ImportError('the wrong package')\n")
    command = [sys.executable, "-m", "enable", "models", "--json"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    names = [m["name"] for m in json.loads(result.stdout)["models"]]
    assert names == ["dcn", "dhen", "dlrm", "hstu", "nanogpt"], result.stderr


def test_doctor(tmp_path):
    result = enable("doctor", "--json", cwd=tmp_path)
    found = json.loads(result.stdout)
    assert result.returncode == 0 and found["ok"] and result.stderr == "", result.stderr
    assert "compiled, executed and compared" in next(c for c in found["checks"] if c["name"] == "sim")["detail"]


def test_help_names_the_dialects_that_errors_name(tmp_path):
    listed = enable("lint", __file__, "--profile", "foo", cwd=tmp_path).stderr.strip().rpartition(": ")[2].split(", ")
    named = " ".join(help_of("lint").split()).partition("Dialect: ")[2].partition(" (the library")[0]
    assert sorted(re.split(r", (?:or )?", named)) == sorted(listed)


def test_help_pages_have_words_in_place_of_python_types():
    for command in commands():
        page = help_of(*command)
        assert not re.search(r"<(str|int|float|path|list)|x>=|default: \(|\{[A-Z]", page), page
    assert "--limit NUMBER" in help_of("verify") and "[default: 128; at least 1]" in " ".join(help_of("verify").split())


def test_options_are_named_by_every_supported_typer():
    """Typer 0.27 takes a metavar that is the name of its option for the option's own spelling: --TRACE."""
    unnamed = [
        f"{path.stem}: {argument.arg}"
        for path in sorted((ROOT / "enable" / "commands").glob("*.py"))
        for argument in ast.walk(ast.parse(path.read_text()))
        if isinstance(argument, ast.arg) and argument.annotation is not None
        for call in ast.walk(argument.annotation)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "typer.Option" and not call.args
        for keyword in call.keywords
        if keyword.arg == "metavar" and ast.literal_eval(keyword.value).lower() == argument.arg.replace("_", "-")
    ]
    assert unnamed == []
