"""Every function of the kernel dialect in the interpreter, against what a GPU gave (tests/verify/language.py)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from verify.platforms import PROFILES

HERE = Path(__file__).parent
SOURCE = (HERE / "language.py").read_text()
RECORDED = HERE / "language.json"
NO_FUNCTIONS = r"tl\.(constexpr|pointer_type|PropagateNan\..*|u?int\d+|b?float\d+)"
LOOSE = 1e-5  # relative: hardware approximates exponentials, roots and quotients within a few roundings of float32


@pytest.fixture(scope="module")
def interpreted():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.verify.language"]
    process = subprocess.run(command, capture_output=True, env=environment, cwd=HERE.parents[1], timeout=300)
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)


def test_every_function_of_the_dialect_is_there():
    names = yaml.safe_load((PROFILES / "triton.yaml").read_text())["kernel"]["names"]
    functions = {name for name in names if not re.fullmatch(NO_FUNCTIONS, name)}
    used = set(re.findall(r"tl(?:\.[a-z]\w*)+", SOURCE)) | {
        f"tl.{prefix}{name}"
        for prefix in ("", "math.", "atomic_")
        for group in re.findall(r"for name in \(([^)]*)\)", SOURCE)
        for name in re.findall(r'"(\w+)"', group)
    }
    assert not functions - used


def test_every_function_is_interpreted(interpreted):
    assert len(interpreted) > 80 and all(len(values) == 64 for values in interpreted.values())


def test_the_interpreter_computes_as_hardware_does(interpreted):
    recorded = json.loads(RECORDED.read_text())
    assert recorded.keys() == interpreted.keys()
    for name, values in recorded.items():
        scale = float(np.max(np.abs(np.nan_to_num(values, posinf=0, neginf=0))))
        np.testing.assert_allclose(interpreted[name], values, rtol=LOOSE, atol=LOOSE * min(scale, 1), err_msg=name)
        if "special numbers" in name:  # a denormal number that is flushed is within the tolerance of zero
            assert [v == 0 for v in interpreted[name]] == [v == 0 for v in values], name


FLUSHING = """
import os
import torch
import triton
import triton.language as tl

@triton.jit
def power_kernel(x_ptr):
    tl.store(x_ptr, tl.exp2(tl.load(x_ptr)))

@triton.jit
def sine_kernel(x_ptr):
    tl.store(x_ptr, tl.sin(tl.load(x_ptr)))

for kernel, x, instruction in ((power_kernel, -130.0, "ex2.approx.ftz.f32"), (sine_kernel, 1e-40, "fma.rn.ftz.f32")):
    if os.environ["TRITON_INTERPRET"] == "1":
        from verify.child.interpreter import mend

        mend()
        number = torch.tensor([x])
        kernel[(1,)](number)
        print(number.item() == 0)
    else:
        source = triton.compiler.ASTSource(kernel, {"x_ptr": "*fp32"}, {})
        target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
        print(instruction in triton.compile(source, target=target).asm["ptx"])
"""


@pytest.mark.parametrize("interpreted", ["0", "1"])
def test_what_has_no_instruction_for_denormal_numbers_flushes_them(tmp_path, interpreted):
    """PTX has `ex2.approx.f32` too, with which exp is computed; exp2 is not."""
    (tmp_path / "flushing.py").write_text(FLUSHING)
    environment = {**os.environ, "TRITON_INTERPRET": interpreted, "PYTHONPATH": str(HERE.parents[1])}
    command = [sys.executable, "-W", "ignore", str(tmp_path / "flushing.py")]
    process = subprocess.run(command, capture_output=True, env=environment, cwd=HERE.parents[1], timeout=300)
    assert process.stdout.split() == [b"True", b"True"], process.stderr[-2000:]
