"""`enable platform`, and commands on a platform that is a file of the user's."""

import json
import shutil

import pytest
import torch

from capture import Recorder
from enable.cli import run
from generate.kernel_library import KERNELS

CHIP = """\
base: sim
targets:
  - {backend: hip, arch: gfx942, warp_size: 64, shared_bytes: 65536}
lint:
  base: triton
  remove:
    dtypes: [float16]
    kernel: {names: [tl.exp]}
"""


@pytest.fixture
def enable(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        capfd.readouterr()
        status = run(list(words))
        return status, *capfd.readouterr()

    return call


def test_a_file_is_checked_and_used(enable, tmp_path, monkeypatch):
    (tmp_path / "mychip.yaml").write_text(CHIP)
    (tmp_path / "small" / "pointwise").mkdir(parents=True)
    for name in ("exp", "neg", "reciprocal"):
        shutil.copy(KERNELS / "pointwise" / f"{name}.py", tmp_path / "small" / "pointwise")
    monkeypatch.setenv("ENABLE_LIBRARY", str(tmp_path / "small"))
    status, out, err = enable("platform", "check", "./mychip.yaml", "--json")
    found = json.loads(out)
    assert status == 0 and found["passed"], err
    assert [step["name"] for step in found["steps"]] == ["dialect", "target hip gfx942", "execution"]
    assert "tl.exp" in found["outside"]["pointwise/exp.py"] and "pointwise/neg.py" not in found["outside"]
    assert found["refused"] == [] and [lack["lacks"] for lack in found["lacks"]] == ["tl.exp"]
    assert found["library"]["kernels"] == 3
    assert found["library"]["in_the_dialect"] == found["library"]["kernels"] - len(found["outside"])

    with Recorder("work.trace") as recorder:
        x = torch.randn(70)
        x.exp(), x.neg(), x.half().reciprocal()
        recorder.step()
    status, out, err = enable("coverage", "work.trace", "--platform", "./mychip.yaml", "--json")
    rows = {row["overload"]: row for row in json.loads(out)["rows"]}
    assert rows["aten::neg"]["outcome"] == "PASS", err
    outside = rows["aten::exp"]
    assert (
        outside["outcome"] == "COMPILE_ERROR" and "not in the dialect of mychip: tl.exp at exp.py" in outside["detail"]
    )
    assert "float16" in rows["aten::reciprocal"]["detail"] and rows["aten::reciprocal"]["outcome"] != "PASS"
    assert json.loads(out)["platform"] == "mychip" and json.loads(out)["not_in_the_dialect"] == {"tl.exp": 1}
    status, out, _ = enable("verify", "aten::exp", "--cases", "trace:work.trace", "--platform", "./mychip.yaml")
    assert status == 1 and outside["detail"].partition("cases: ")[2] in out, "the reason that coverage gave"


def test_what_does_not_work_is_told(enable, tmp_path):
    (tmp_path / "mychip.yaml").write_text("base: sim\ndevice: mychip\n")
    status, out, _ = enable("platform", "check", "./mychip.yaml")
    assert status == 1 and "FAIL  execution" in out and "has no such device" in out and "next" not in out
    (tmp_path / "mychip.yaml").write_text(CHIP.replace("backend: hip", "backend: orion"))
    status, out, _ = enable("platform", "check", "./mychip.yaml")
    assert (
        status == 1 and "no backend for target orion; there are: amd, nvidia. Install the chip's Triton plugin" in out
    )
    status, _, err = enable("verify", "aten::neg", "--platform", "./mychip.yaml")
    assert status == 2 and "no backend for target orion" in err
    status, _, err = enable("platform", "check", "./other.yaml")
    assert status == 2 and err.startswith("enable: other.yaml: cannot be read")
    status, out, _ = enable("platform", "list", "--json")
    assert {"sim", "cuda"} <= {row["platform"] for row in json.loads(out)["platforms"]}
