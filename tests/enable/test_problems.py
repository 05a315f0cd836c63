"""Problems in KernelBench's format become files with ModelNew, which compare themselves with Model."""

import json
import shutil
from pathlib import Path

import pytest
from shared import sampled
from warm import python

PROBLEMS = Path(__file__).parents[1] / "problems"
FUSED = {
    "level2_add_norm_relu": "fused::add_native_layer_norm_relu",
    "level2_linear_gelu_scale": "fused::addmm_gelu_mul",
    "level2_product_mean": "fused::clamp_mean",
    "level2_swish_bias_softmax": "fused::sigmoid_mul_add_softmax",
    "level3_block": "fused::addmm_view_gelu",
    "level3_mlp": "fused::addmm_relu",
}


def enable(*words):
    return python("-m", "enable", *words, cwd=Path.cwd(), timeout=300)


def run(path):
    return python(path.name, cwd=path.parent, timeout=300, PYTHONPATH="")


SOLVED = sorted(p.stem for p in PROBLEMS.glob("*.py"))


@pytest.mark.parametrize("name", sampled(SOLVED, SOLVED[::2]))  # of each level
def test_a_problem_is_solved(name, tmp_path):
    from enable.fuse.problem import traced

    new = tmp_path / "new.py"
    found = traced(PROBLEMS / f"{name}.py")
    new.write_text(found["text"])
    assert found["kernels"] and not found["by_torch"]
    assert any(overload.startswith(FUSED.get(name, "aten::")) for overload in found["kernels"])
    ended = run(new)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count(": right, ") == 3


def test_a_wrong_kernel_is_told(tmp_path):
    new = tmp_path / "level1_gelu_new.py"
    file = Path(shutil.copy(PROBLEMS / "level1_gelu.py", tmp_path))
    told = enable("fuse", str(file))
    assert "kernel   1 x aten::gelu" in told.stdout and f"python {new}" in told.stdout
    new.write_text(new.read_text().replace("return 0.5 * x * (1 + ", "return 0.4 * x * (1 + "))
    ended = run(new)
    assert ended.returncode == 1 and ended.stdout.count("WRONG") == 3


def test_json_names_the_file(tmp_path):
    told = enable("fuse", str(PROBLEMS / "level1_sum.py"), "--out", str(tmp_path / "x.py"), "--json")
    assert json.loads(told.stdout)["kernels"] == {"aten::sum.dim_IntList": 1}


GOOD = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.ones(3)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("class Model", "class Mode", "it has no Model; a problem has Model, get_inputs, get_init_inputs"),
        ("def get_inputs", "def inputs", "it has no get_inputs"),
        ("import torch", "import torch\nraise ValueError('no luck')", "it raises: ValueError: no luck"),
        ("return x + 1", "return x[x > 0]", "depends on data"),
        ("return x + 1", "return x + (1 if x.sum() > 0 else 2)", "depends on data"),
        ("torch.ones(3)", "torch.ones(3, device='cuda')", "it needs a device that is not here"),
        ("return x + 1", "return x @ x.view(1, 3)", "its forward cannot be traced"),
        ("torch.nn.Module", "object", "Model is no torch.nn.Module"),
    ],
)
def test_what_is_no_problem_is_told_in_a_line(old, new, said, tmp_path):
    from enable.fuse.problem import traced
    from traces import UserError

    (tmp_path / "bad.py").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UserError, match=said):
        traced(tmp_path / "bad.py")


def test_a_file_that_ends_its_process_is_told(tmp_path):
    (tmp_path / "bad.py").write_text("import os\nos._exit(7)\n")
    ended = enable("fuse", str(tmp_path / "bad.py"))
    assert ended.returncode == 2 and "ended with status 7" in ended.stderr and ended.stderr.count("\n") == 1
    assert "no such file" in enable("fuse", str(tmp_path / "none.py")).stderr
