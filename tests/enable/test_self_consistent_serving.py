"""A kernel that calls kernels of the library, registered under PyTorch and exported: the library still answers."""

import json
import shutil

import pytest
import torch
from sources import SOFTMAX
from warm import python

from capture import Recorder
from enable import library
from enable.cli import run
from enable.serve.export import Label, export
from generate.kernel_library import KERNELS, Library

X = torch.linspace(-2, 2, 12).view(3, 4)
TWICE = (torch.exp(X) + 1) / (torch.exp(X) + 1).sum(1, keepdim=True)  # with an exp that adds 1


@pytest.fixture
def kernels(tmp_path):
    """Kernel files, whose exp adds 1, so that it can be told from ATen's."""
    for name in ("pointwise/exp", "pointwise/div", "reduction/sum"):
        (tmp_path / "library" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KERNELS / f"{name}.py", tmp_path / "library" / f"{name}.py")
    exp = tmp_path / "library" / "pointwise" / "exp.py"
    exp.write_text(exp.read_text().replace("tl.exp(", "1.0 + tl.exp("))
    (tmp_path / "library" / "softmax").mkdir()
    (tmp_path / "library" / "softmax" / "softmax.py").write_text(SOFTMAX)
    return Library(tmp_path / "library")


def test_registered_alone_it_is_still_answered_by_the_library(kernels):
    with library.use("cpu", ops=["aten::_softmax"], unverified=True, library=kernels) as registration:
        torch.testing.assert_close(torch.softmax(X, 1), TWICE)
        assert registration.counts.served == {"aten::_softmax": 1}
    torch.testing.assert_close(torch.softmax(X, 1).sum(1), torch.ones(3))


def test_on_a_device_where_nothing_else_exists(kernels):
    with library.use("sim", ops=["aten::_softmax"], unverified=True, library=kernels):
        torch.testing.assert_close(torch.softmax(X.to("sim"), 1).cpu(), TWICE)


def test_exported_with_what_it_calls(kernels, tmp_path):
    entries = library.select(["aten::_softmax"], unverified=True, library=kernels).entries
    export("package", tmp_path / "out", entries, Label("theirs", "sim", "unverified", "basis"), force=False)
    code = "import torch, theirs; print(torch.softmax(torch.linspace(-2, 2, 12).view(3, 4), 1).tolist())"
    done = python("-c", code, cwd=tmp_path, THEIRS_DEVICE="cpu", PYTHONPATH=str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    torch.testing.assert_close(torch.tensor(json.loads(done.stdout)), TWICE)
    told = export("backendbench", tmp_path / "bb", entries, Label("theirs", "sim", "unverified", "basis"), force=False)
    assert told.left_out == {"aten::_softmax": "its wrapper calls other kernels"}


def test_verify_judges_the_librarys_own_with_what_it_calls(kernels, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Recorder(tmp_path / ".enable" / "traces" / "small.trace"):
        torch.softmax(X, 1)
    options = ["--cases", "trace:small", "--json", "--library", "library"]
    assert run(["verify", "aten::_softmax", *options]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["layer"]) == ("WRONG", "compare")  # its exp adds 1
    assert run(["verify", "library/softmax/softmax.py", *options]) == 1  # a file is nobody's yet
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["layer"]) == ("CHEAT", "lint")
