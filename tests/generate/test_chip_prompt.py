"""A prompt for a user's chip states every rule of its YAML, and gives no advice against one."""

import re
from dataclasses import replace

import pytest

from generate.machine import State
from generate.prompts import chip, opening
from generate.task import Task
from verify import platforms
from verify.lint import load_profile
from verify.outcome import Outcome, Verdict

REMOVED = (
    *("tl.float64", "tl.atomic_add", "tl.atomic_max", "tl.atomic_min", "tl.atomic_and", "tl.atomic_or"),
    *("tl.atomic_xor", "tl.atomic_xchg", "tl.atomic_cas", "tl.sort", "tl.histogram", "tl.associative_scan"),
    *("tl.int64", "tl.sigmoid"),
)
ORION = f"""\
base: sim
description: Orion-1 NPU with 128 KiB of scratchpad
targets:
  - {{backend: hip, arch: gfx942, warp_size: 64, shared_bytes: 32768}}
alignment: 64
lint:
  base: triton
  forbidden: [scatter-store, half-maths]
  blocks: [without_erf]
  remove:
    dtypes: [float64, complex64]
    kernel:
      names: [{", ".join(REMOVED)}]
      annotations: [fp64, tl.float64, tl.int64]
  hints:
    tl.float64: "compute in tl.float32 and carry the rounding error along"
    tl.atomic_add: "let one program own each destination"
"""


@pytest.fixture
def platform(tmp_path):
    path = tmp_path / "orion.yaml"
    path.write_text(ORION)
    return platforms.load(str(path))


def task_for(platform, **changes):
    task = Task("aten::gelu", ("aten::gelu(Tensor self) -> Tensor",), ("float32",), "gelu.py", profile=platform.lint)
    return replace(task, chip=chip(platform), **changes)


def test_every_rule_of_the_file_is_stated(platform):
    section = chip(platform)
    rules = ("Orion-1 NPU with 128 KiB", "hip for gfx942", "64 threads", "32768 bytes", "multiple of 64 bytes")
    rules += ("scatter-store", "half-maths", "no float64, complex64", "tl.erf, tl.math.erf: the chip's own functions")
    rules += ("No tl.float64: compute in tl.float32 and carry", "No tl.atomic_add: let one program own each")
    rules += ("annotated with fp64, tl.float64, tl.int64",)
    assert [rule for rule in (*rules, *REMOVED) if rule not in section] == []
    assert section in opening(task_for(platform), State())[0].content


def test_blocks_that_choose_what_the_chip_limits_are_named(tmp_path):
    path = tmp_path / "narrow.yaml"
    path.write_text("base: sim\nlimits: {num_warps: [4]}\n")
    section = chip(platforms.load(str(path)))
    line = next(line for line in section.splitlines() if "they may choose another num_warps" in line)
    assert re.findall(r"\w+", line.partition("blocks")[2].partition(":")[0]) == [
        "elementwise",
        "multi_tensor_apply",
        "reduce",
    ]
    assert "num_stages" not in section


def test_no_advice_is_against_a_rule(platform):
    section = chip(platform)
    for task in (
        task_for(platform, draws="law"),
        task_for(platform, draws="fixed"),
        task_for(platform, sized_by_data=True, numbers=("other",), source="import torch\n"),
    ):
        text = "\n".join(message.content for message in opening(task, State())).replace(section, "")
        assert [name for name in REMOVED if re.search(rf"{re.escape(name)}\b", text)] == []
    assert chip(platforms.load("sim")) == "" and "tl.atomic_add" in opening(TASK_ON_SIM, State())[0].content


TASK_ON_SIM = Task("aten::gelu", ("aten::gelu(Tensor self) -> Tensor",), ("float32",), "gelu.py")


def test_the_violation_is_the_failure(platform):
    detail = "not in the dialect of orion: tl.atomic_add at gelu.py:14; let one program own each destination"
    failing = Verdict("case 1", Outcome.COMPILE_ERROR, detail, layer="lint", rule="dialect")
    text = opening(task_for(platform, source="import torch\n", failing=failing), State())[1].content
    assert detail in text and "No failure of it is known" not in text


def test_inherited_hints_do_not_name_what_is_missing(platform):
    profile, usual = load_profile(platform.lint), load_profile("triton")
    assert "tl.sigmoid" in usual.instead("tl.tanh") and profile.instead("tl.tanh") == ""
    assert profile.instead("tl.pow") == usual.instead("tl.pow") and profile.instead("tl.atomic_add")


def test_a_task_without_a_chip_keeps_its_digest(platform):
    on_chip = task_for(platform)
    assert replace(on_chip, chip="").digest() != on_chip.digest()
    assert Task("a", (), (), "p").digest() == replace(Task("a", (), (), "p"), chip="").digest()
