"""`enable platform discover`: the catalogue, its processes, the rules and the files that it writes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import torch
import yaml

from enable.cli import run
from enable.discover.catalogue import catalogue
from enable.discover.discovery import Discovery, _smallest, reproducer
from enable.discover.entries import FLOATS8, flat
from enable.discover.output import write
from enable.discover.pool import WorkerPool
from enable.discover.profile import base_lists
from enable.discover.report import html, junit
from enable.discover.rules import derive
from enable.discover.verdicts import CRASHED, NOT_COMPILED, SLOW, WORKS, WRONG, EntryVerdict, explained, verdict
from generate.kernel_library import KERNELS
from verify import platforms
from verify.lint import load_profile

ENTRIES = {e.name: e for e in catalogue()}
TARGET = {"backend": "cuda", "arch": 90, "warp_size": 32, "shared_bytes": 232448}
NOT_TRIED = r"tl\.(constexpr|pointer_type|PropagateNan\..*|u?int\d+|b?float\d+|math\..*)"


@pytest.fixture
def enable(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        capfd.readouterr()
        status = run(list(words))
        return status, *capfd.readouterr()

    return call


def test_the_catalogue_is_large_and_consistent():
    assert len(ENTRIES) == len(catalogue()) > 500
    assert {name for e in ENTRIES.values() for name in e.needs} <= ENTRIES.keys()
    for each in ENTRIES.values():
        compile(each.text, each.name, "exec")


def test_the_catalogue_calls_every_function_of_the_dialect():
    texts = "\n".join(e.text for e in ENTRIES.values())
    names = {name for name in base_lists()["kernel"]["names"] if not re.fullmatch(NOT_TRIED, name)}
    assert {name for name in names if f"{name}(" not in texts} == set()


def test_a_pattern_selects_entries_and_what_they_need():
    names = [e.name for e in catalogue(("tl.exp[dtype=float64]",))]
    assert names == ["copy[dtype=float64]", "tl.exp[dtype=float64]"]


def broken(statement):
    """An entry that does something else than compile."""
    whole = flat("dtypes", "copy", "x")
    return replace(whole, name=statement, text=whole.text + f"\nimport os, time\n{statement}\n")


def test_a_crash_or_a_hang_costs_one_entry():
    answers = {}
    entries = [
        broken("os.abort()"),
        ENTRIES["copy[dtype=float32]"],
        broken("os._exit(7)"),
        ENTRIES["tl.exp[dtype=float32]"],
        broken("raise ValueError('refused')"),
    ]
    hanging = broken("time.sleep(60)")
    with WorkerPool(1, TARGET, "", seconds=20) as pool:
        assert "problem" not in pool.describe()
        pool.run(entries, lambda entry, answer: answers.update({entry.name: answer}))
    with WorkerPool(1, TARGET, "", seconds=2) as pool:
        hung = pool.ask(hanging)
    statuses = [answers[e.name]["status"] for e in entries]
    assert statuses == ["crashed", "compiled", "crashed", "compiled", "refused"]
    messages = [answers[e.name].get("message", "") for e in entries if answers[e.name]["status"] != "compiled"]
    assert messages == ["killed by SIGABRT", "exited with status 7", "ValueError: refused"]
    assert (hung["status"], hung["message"]) == ("crashed", "no answer within 2 s")


def test_a_target_is_discovered_checked_and_reported(enable, tmp_path, monkeypatch):
    words = ("platform", "discover", "--backend", "cuda", "--arch", "90", "-o", "mychip.yaml")
    only = [word for name in ("tl.exp", "tl.clamp", "num_ctas") for word in ("--only", name)]
    status, out, err = enable(*words, *only, "--json")
    assert status == 0, err
    result = json.loads(out)
    assert list(result["failures"]) == ["tl.clamp[dtype=float64]"]  # an instruction that LLVM has for float32 alone
    assert result["failures"]["tl.clamp[dtype=float64]"]["verdict"] == NOT_COMPILED
    assert result["files"] == ["mychip.yaml", "mychip-conformance.html", "mychip-conformance.xml"]
    assert sorted(os.listdir(tmp_path)) == sorted(result["files"])
    text = (tmp_path / "mychip.yaml").read_text()
    assert re.search(r"# *tl\.clamp\[dtype=float64\]: not compiled: RuntimeError: .*\n.*tl\.clamp: \[", text)
    page = (tmp_path / "mychip-conformance.html").read_text()
    assert page.count("<details>") == 1 and "tl.clamp[dtype=float64]" in page
    suites = ElementTree.parse(tmp_path / "mychip-conformance.xml").getroot()
    (failure,) = suites.iter("failure")
    assert failure.get("type") == NOT_COMPILED and len(list(suites.iter("testcase"))) == 13

    program = failure.text.partition("Reproducer:\n\n")[2]
    (tmp_path / "reproducer.py").write_text(program)
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    command = [sys.executable, "reproducer.py"]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 1 and "RuntimeError: failed to translate module to LLVM IR" in process.stderr

    status, out, _ = enable(*words, *only)
    assert status == 2  # the file exists
    (tmp_path / "small" / "pointwise").mkdir(parents=True)
    shutil.copy(KERNELS / "pointwise" / "neg.py", tmp_path / "small" / "pointwise")
    monkeypatch.setenv("ENABLE_LIBRARY", str(tmp_path / "small"))
    status, out, err = enable("platform", "check", "./mychip.yaml")
    assert status == 0, out + err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.yaml"], "nothing to discover"),
        (["--backend", "orion", "--arch", "1", "-o", "x.yaml"], "no backend for orion:1; it has amd, nvidia"),
        (
            ["--device", "orion", "-o", "x.yaml"],
            "start of device string: orion; name the Python module that makes PyTorch",
        ),
        (
            ["--device", "orion", "--module", "nosuch", "-o", "x.yaml"],
            "device orion cannot be used: ModuleNotFoundError",
        ),
        (
            ["--device", "cpu", "-o", "x.yaml"],
            "; install the chip's Triton plugin, or compile only: --backend NAME --arch",
        ),
        (["--backend", "cuda", "--arch", "gfx942", "-o", "x.yaml"], "--arch 'gfx942': cuda takes numbers, such as"),
        (["--backend", "hip", "--arch", "90", "-o", "x.yaml"], "--arch 90: hip takes names, such as --arch gfx942"),
        (
            ["--backend", "hip", "--arch", "gfx9999", "-o", "x.yaml", "--only", "tl.erf"],
            "nothing of the catalogue works for hip gfx9999, such as",
        ),
        (["--backend", "cuda", "--arch", "90", "-o", "cuda.yaml"], "'cuda' is a platform of the toolkit"),
        (["--backend", "cuda", "--arch", "90", "-o", "my chip.yaml"], "is no platform name"),
        (["--backend", "cuda", "--arch", "90", "-o", "x.yaml", "--only", "tl.tahn"], "matches 'tl.tahn'"),
    ],
)
def test_a_mistake_is_one_line(enable, tmp_path, words, message):
    status, _, err = enable("platform", "discover", *words)
    assert status == 2 and message in err and err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_neither_files_nor_processes(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "tmp").mkdir()
    code = "import sys; from enable.cli import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "platform", "discover", "--backend", "cuda", "--arch", "90", "-o", "x.yaml"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": os.getcwd()}
    process = subprocess.Popen(command, cwd=tmp_path / "work", env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "tmp").glob("enable-discover-*/*.py")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() < deadline
    assert os.listdir(tmp_path / "work") == []
    words = [path for path in os.listdir("/proc") if path.isdigit() and environment_has(path, str(tmp_path / "tmp"))]
    assert words == []


def environment_has(pid, text):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"TMPDIR={text}".encode() in file.read()
    except OSError:
        return False


def test_results_are_compared_with_the_interpreter(tmp_path):
    entry = ENTRIES["tl.exp[dtype=float32]"]
    expected, wrong = torch.arange(64.0), torch.arange(64.0)
    wrong[5] = 9

    def answer(values, **more):
        path = tmp_path / f"{len(os.listdir(tmp_path))}.pt"
        torch.save([values], path)
        return {"status": "compiled", "values": str(path), "milliseconds": 0.1, **more}

    assert verdict(entry, answer(expected + 1e-5), answer(expected)).verdict == WORKS
    different = verdict(entry, answer(wrong), answer(expected))
    assert different.verdict == WRONG
    assert different.message == "1 of 64 elements differ from the interpreter's, the first at 5: 9.0 instead of 5.0"
    assert verdict(entry, {"status": "failed", "message": "launch"}, answer(expected)).verdict == CRASHED
    uncompared = verdict(entry, answer(wrong), {"status": "failed", "message": "unknown"})
    assert uncompared.verdict == WORKS and "not compared" in uncompared.message
    many = {str(n): verdict(entry, answer(expected), answer(expected)) for n in range(4)}
    slow = explained({**many, "x": verdict(entry, answer(expected, milliseconds=50.0), answer(expected))})
    assert [v.verdict for v in slow.values()] == [WORKS] * 4 + [SLOW]


def test_programs_run_on_a_device(enable, monkeypatch):
    """With Triton's interpreter as the device's driver."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    words = ("platform", "discover", "--device", "cpu", "--backend", "cuda", "--arch", "90", "--only", "tl.abs[*")
    status, out, err = enable(*words, "--only", "tl.atomic_xchg[dtype=bfloat16]", "-o", "mychip.yaml", "--json")
    assert status == 0, err
    failures = json.loads(out)["failures"]
    assert failures["tl.atomic_xchg[dtype=bfloat16]"]["verdict"] == CRASHED  # the interpreter has no such exchange
    assert not any(name.startswith("tl.abs") for name in failures)


class SizedPool:
    """A pool whose programs work up to a size of 8."""

    def ask(self, entry, timed=True):
        is_small = entry.meta["N"] <= 8 and f"'N': {entry.meta['N']}" in entry.text
        return {"status": "compiled"} if is_small else {"status": "refused", "message": "too large"}


def test_a_failure_is_bisected_to_the_smallest_size():
    failure = verdict(ENTRIES["tl.exp[dtype=float32]"], {"status": "refused", "message": "too large"}, None)
    smallest = _smallest(failure, SizedPool(), None)
    assert smallest.smallest == {"N": 16} and smallest.largest_working == 8
    assert "from N = 16" in smallest.evidence


def with_failures(*patterns):
    """Verdicts on the catalogue, in which the entries with these names or beginnings fail."""
    verdicts = {
        name: EntryVerdict(e, NOT_COMPILED, "<b>no & such\x1b thing")
        if name.startswith(patterns)
        else EntryVerdict(e, WORKS)
        for name, e in ENTRIES.items()
    }
    return Discovery("", "", TARGET, "3.9.0", "2.13.0", explained(verdicts))


FAILING = {
    "tl.erf[": ("remove", ("kernel", "names"), "tl.erf"),
    "tl.log[dtype=float64": ("limits", ("functions", "tl.log"), ["float32"]),
    "num_ctas[num_ctas=2": None,
    "num_ctas[": ("remove", ("kernel", "launch_options"), "num_ctas"),
    "num_warps[num_warps=32": ("limits", ("num_warps",), [1, 2, 4, 8, 16]),
    "While[": ("remove", ("kernel", "constructs"), "While"),
    "scatter store[": ("forbidden", (), "scatter-store"),
    "alignment[bytes=1]": ("alignment", (), 2),
    "block[elements=65536": ("limits", ("block_elements",), 16384),
    "tl.dot[shape=16x16x8": ("limits", ("dot_smallest",), [1, 1, 16]),
    "copy[dtype=float64": ("remove", ("dtypes",), "float64"),
    "tl.dot[dtype=int8": (
        "limits",
        ("dot_dtypes",),
        ["float16", "bfloat16", "float64", *FLOATS8, "float32"],
    ),
}


@pytest.mark.parametrize("beginning", FAILING)
def test_a_failure_becomes_the_rule_that_states_it(beginning):
    rules = derive(with_failures(beginning).verdicts.values(), base_lists())
    expected = FAILING[beginning]
    if expected is None:
        assert [rule.kind for rule in rules] == ["note"]
        return
    kind, key, value = expected
    (rule,) = [rule for rule in rules if (rule.kind, rule.key) == (kind, key) and rule.value != "tl.math.erf"]
    assert rule.value == value
    assert beginning.partition("[")[0] in rule.evidence and "no & such" in rule.evidence


def test_a_missing_dtype_explains_what_else_fails_with_it():
    discovery = with_failures("copy[dtype=float64", "tl.exp[dtype=float64", "tl.sum[dtype=float64")
    assert [v.entry.name for v in discovery.failures] == ["copy[dtype=float64]"]
    rules = derive(discovery.verdicts.values(), base_lists())
    assert not [rule for rule in rules if rule.kind == "limits"]


def test_all_rules_together_are_a_platform_that_loads(tmp_path):
    path = tmp_path / "mychip.yaml"
    discovery = with_failures(*FAILING, "tl.cast[source=float32,target=int8")
    write(discovery, path)
    platform, profile = platforms.load(str(path)), load_profile(str(path))
    assert platform.alignment == 2 and platform.targets[0].arch == 90
    assert "float64" not in profile.dtypes and "scatter-store" in profile.forbidden
    removed = {"tl.erf", "tl.math.erf", "tl.float64"}
    assert not removed & profile.kernel.names and "While" not in profile.kernel.constructs
    assert "num_ctas" not in profile.kernel.launch_options and "erf" not in profile.kernel.attributes
    assert "num_warps: [1, 2, 4, 8, 16]" in path.read_text()
    assert yaml.safe_load(path.read_text())["lint"]["hints"]["tl.cast"] == "not with source float32, target int8"


def test_reports_escape_what_compilers_print():
    discovery = with_failures("tl.erf[")
    page, text = html(discovery, "mychip.yaml"), junit(discovery)
    assert "<b>no" not in page and "&lt;b&gt;no &amp; such\\x1b thing" in page and "\x1b" not in page + text
    (first, _) = ElementTree.fromstring(text).iter("failure")
    assert first.get("message") == "<b>no & such\\x1b thing"
    program = reproducer(discovery.failures[0], discovery)
    compile(program, "reproducer", "exec")
    assert "tl.erf(x)" in program and "GPUTarget('cuda', 90, 32)" in program
