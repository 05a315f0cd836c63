"""`enable new`: the beginning of a kernel file."""

import pytest
import torch
from shared import packaged

from capture import Recorder
from enable.cli import run
from enable.refine.skeleton import skeleton
from generate import BLOCKS
from verify.lint import lint, load_profile

POINTWISE = ("aten::silu", "aten::gelu_backward", "aten::addcmul", "aten::where.self")
OTHERS = (
    "aten::mm",
    "aten::_softmax",
    "aten::convolution",
    "aten::cumsum",
    "aten::_scaled_dot_product_flash_attention",
)


@pytest.mark.parametrize("overload", [*POINTWISE, *OTHERS])
def test_what_is_begun_is_a_kernel_file_of_the_dialect(overload, tmp_path):
    text = skeleton(overload, None)
    assert lint(text, load_profile("triton").with_blocks(BLOCKS), overload) == []
    kernel = packaged().parse(text, tmp_path / "k.py")
    assert kernel.overloads == (overload,)
    assert ("broadcast_tensors" in text) == (overload in POINTWISE[1:])


def test_it_lists_how_a_trace_calls_it(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.SiLU())
    with Recorder("cnn.trace", model=model), torch.no_grad():
        model(torch.randn(3, 5))
        model(torch.randn(7, 4).t().double())
    assert run(["new", "silu", "--from", "cnn.trace"]) == 0
    text = (tmp_path / "silu.py").read_text()
    assert "Recorded in cnn:" in text and text.count("   2 x  ") == 2 and "in 0\n" in text
    assert 'DTYPES = ("float32", "float64")' in text and "[4, 7]" in text
    assert "next  enable verify silu.py --cases trace:cnn.trace --watch" in capfd.readouterr().out
    assert run(["new", "silu"]) == 2 and "exists; name another file" in capfd.readouterr().err
    assert run(["new", "silu", "--out", "other.py"]) == 0 and (tmp_path / "other.py").exists()


@pytest.mark.parametrize(
    "words, told",
    [
        (["aten::add_.Tensor"], "is served by a kernel for aten::add.Tensor; write that: enable new aten::add.Tensor"),
        (["siluu"], "aten::siluu: not an operator of ATen"),
        (["zeros"], "takes no tensor that is always there"),
        (["relu", "--from", "nothing"], "no trace 'nothing'"),
        (["relu", "--out", "no/such/place.py"], "cannot be written"),
    ],
)
def test_bad_input_is_told_in_a_line(words, told, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run(["new", *words]) == 2
    error = capfd.readouterr().err
    assert told in error and error.count("\n") == 1
    assert not list(tmp_path.glob("*.py"))
