"""`enable capture --device sim` of a user's own factory, and what a trace of the CPU says of it."""

import json
import shlex
import sys

import pytest
import torch

from capture import Recorder
from enable.cli import run
from traces.overloads import of_cpus

RECURRENT = """\
import torch

class Net(torch.nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, width, device=device)
        self.last = torch.nn.Linear(width, 2, device=device)
    def forward(self, x):
        return self.last(self.lstm(x)[0])

def parts(width: int = 8, device: str = "cpu"):
    net = Net(width, device)
    x = torch.randn(3, 2, 4, device=device)
    return net, x, lambda net, x: net(x).square().mean(), torch.optim.SGD(net.parameters(), 0.1)

def stepping(device: str = "cpu"):
    net, x, loss, optimizer = parts(device=device)
    def step():
        value = loss(net, x)
        value.backward()
        optimizer.step()
        return value
    return step
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "recurrent.py").write_text(RECURRENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("recurrent", None)


@pytest.mark.parametrize("factory", ["parts", "stepping"])
def test_a_factory_that_builds_on_the_device(project, capsys, factory):
    assert run(["capture", f"recurrent:{factory}", "--device", "sim", "--json"]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert found["computing"] > 10 and not found["errors"]
    assert run(["trace", "verify", f"recurrent-{factory}"]) == 0
    assert "every comparable call is bit-exact" in capsys.readouterr().out


def test_coverage_says_what_only_a_cpu_is_asked_for(project, capsys):
    assert run(["capture", "recurrent:parts", "--set", "width=6", "--ops", "aten::mkldnn*"]) == 0
    capsys.readouterr()
    assert run(["coverage", "recurrent-parts", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["of_cpus"] == {"overloads": 2, "calls": 2}
    assert {r["overload"] for r in found["rows"] if r["of_cpus"]} == {
        "aten::mkldnn_rnn_layer",
        "aten::mkldnn_rnn_layer_backward",
    }
    assert run(["coverage", "recurrent-parts"]) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if line.startswith("aten::mkldnn") and "for CPUs" in line]) == 2
    assert "for CPUs alone     2 overloads, 2 calls of these: PyTorch calls them on a CPU only" in out
    (line,) = [line for line in out.splitlines() if "on an accelerator" in line]
    command = shlex.split(line.partition("accelerator")[2])
    assert command[:5] == ["enable", "capture", "recurrent:parts", "--set", "width=6"]
    assert run(command[1:]) == 0
    capsys.readouterr()
    assert run(["trace", "show", command[-1], "--json"]) == 0
    assert not [r for r in json.loads(capsys.readouterr().out)["rows"] if of_cpus(r["overload"])]


def test_coverage_of_a_users_own_recording_on_the_cpu(project, capsys):
    x = torch.rand(2, 2)
    with Recorder("mine.trace", info={"model": "mine", "settings": {}}):
        x.to_mkldnn()
    assert run(["coverage", "mine.trace"]) == 0
    assert "on an accelerator  the same program with its model and data on device sim" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, expected",
    [
        ("aten::mkldnn_rnn_layer", True),
        ("mkldnn::_linear_pointwise", True),
        ("mkl::_mkl_linear", True),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", True),
        ("aten::_weight_int4pack_mm_for_cpu", True),
        ("aten::to_mkldnn", True),
        ("aten::fbgemm_linear_int8_weight", True),
        ("aten::_to_cpu", False),
        ("aten::mm", False),
        ("mymkl::gemm", False),
    ],
)
def test_operators_of_cpus(name, expected):
    assert of_cpus(name) is expected
