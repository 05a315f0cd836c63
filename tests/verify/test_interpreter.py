"""What Triton's interpreter computes otherwise than hardware, in a process of its own that interprets."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from verify.child.interpreter import fused

PROGRAM = """
import torch
import triton
import triton.language as tl

from verify.child.interpreter import mend

mend()


@triton.jit
def convert(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def fill(out_ptr, value, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, value, mask=i < n)


torch.manual_seed(0)
inf, nan = float("inf"), float("nan")
special = torch.tensor([0.0, -0.0, inf, -inf, nan, 3e38, 3.4e38, 1e-40, 1.00390625, 1.01171875])
for source in (torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
    for target in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int32):
        x = torch.randn(246) * 30 if source is torch.uint8 else torch.randn(246) * 3000
        if source.is_floating_point and target.is_floating_point:
            x = torch.cat([x, special])
        elif source is torch.uint8:
            x = x.abs()
        x = x.to(source)
        out = torch.empty(len(x), dtype=target)
        convert[(1,)](x, out, len(x), BLOCK=256)
        expected = x.to(target)
        assert torch.equal(torch.nan_to_num(out, 7), torch.nan_to_num(expected, 7)), (source, target)
        assert torch.equal(out.isnan(), expected.isnan()), (source, target)


@triton.jit
def compute(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    if OP == "add":
        z = x + y
    elif OP == "fma":
        z = tl.fma(x, y, x)
    elif OP == "equal":
        z = (x == y).to(tl.bfloat16)
    elif OP == "less":
        z = tl.where(x < y, x, y)
    elif OP == "max":
        z = tl.maximum(x, y)
    elif OP == "neg":
        z = -x
    elif OP == "abs":
        z = tl.abs(x)
    elif OP == "minus one":
        z = x - 1
    elif OP == "sum":
        z = tl.zeros((BLOCK,), tl.bfloat16) + tl.sum(x, 0)
    elif OP == "largest":
        z = tl.zeros((BLOCK,), tl.bfloat16) + tl.max(x, 0)
    elif OP == "cumsum":
        z = tl.cumsum(x, 0)
    else:
        z = tl.sort(x)
    tl.store(out_ptr + i, z)


@triton.jit
def multiply(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    ij = i[:, None] * N + i[None, :]
    tl.store(out_ptr + ij, tl.dot(tl.load(x_ptr + ij), tl.load(y_ptr + ij)))


x, y = torch.randn(16).bfloat16(), torch.randn(16).bfloat16()
y[::3] = x[::3]
for name, expected in {
    "add": x + y,
    "fma": (x.float() * y.float() + x.float()).bfloat16(),
    "equal": (x == y).bfloat16(),
    "less": torch.where(x < y, x, y),
    "max": torch.maximum(x, y),
    "neg": -x,
    "abs": x.abs(),
    "minus one": x - 1,
    "sum": x.float().sum().bfloat16().expand(16),
    "largest": x.max().expand(16),
    "cumsum": x.float().cumsum(0).bfloat16(),
    "sort": x.sort()[0],
}.items():
    out = torch.empty(16, dtype=torch.bfloat16)
    compute[(1,)](x, y, out, OP=name, BLOCK=16)
    assert torch.equal(out, expected), name
nan = torch.arange(-16, 0, dtype=torch.int16)  # each NaN another
compute[(1,)](nan.view(torch.bfloat16), x, out, OP="less", BLOCK=16)
assert torch.equal(out, x)
compute[(1,)](x, nan.view(torch.bfloat16), out, OP="less", BLOCK=16)
assert torch.equal(out.view(torch.int16), nan)
x, y, out = torch.randn(16, 16).bfloat16(), torch.randn(16, 16).bfloat16(), torch.empty(16, 16)
multiply[(1,)](x, y, out, N=16)
torch.testing.assert_close(out, x.float() @ y.float())
out = torch.empty(4, dtype=torch.bfloat16)
fill[(1,)](out, 3.14, 4, BLOCK=4)
assert out.tolist() == [3.140625] * 4


@triton.jit
def loop(out_ptr, start, stop, step, WIDE: tl.constexpr):
    at = 0
    for i in range(start, stop, step):
        for j in tl.range(1, 2, num_stages=1):
            k = i * j if not WIDE else i.to(tl.int64) * j
            tl.store(out_ptr + at, k * 3)
            at += 1
    for n in tl.static_range(2):
        tl.store(out_ptr + at + n, n)


for start, stop, step, wide, expected in (
    (0, 5, 2, False, [0, 6, 12, 0, 1]),
    (2**30 - 1, 2**30 + 1, 1, False, [-(2**30) - 3, -(2**30), 0, 1]),  # the variable has 32 bits
    (2**30 - 1, 2**30 + 1, 1, True, [3 * 2**30 - 3, 3 * 2**30, 0, 1]),
    (2**31, 2**31 + 1, 1, False, [3 * 2**31, 0, 1]),  # one bound has 64
    (3, 3, 1, False, [0, 1]),
):
    out = torch.empty(len(expected), dtype=torch.int64)
    loop[(1,)](out, start, stop, step, WIDE=wide)
    assert out.tolist() == expected, (start, out.tolist())
print("converted")
"""


def test_bfloat16_is_computed_as_hardware_does(tmp_path):
    file = tmp_path / "convert.py"  # Triton reads a kernel's source from its file
    file.write_text(PROGRAM)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    told = subprocess.run([sys.executable, file], capture_output=True, text=True, env=environment, timeout=120)
    assert told.stdout == "converted\n", told.stderr[-2000:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fused_product_and_sum_is_rounded_once(dtype):
    """Triton 3.6 rounds it twice; later versions compute it in C++."""
    from triton._C.libtriton import interpreter

    exact = {np.float32: interpreter.fma_fp32, np.float64: interpreter.fma_fp64}[dtype]
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), (2, 20000), dtype=f"u{np.dtype(dtype).itemsize}")
    with np.errstate(all="ignore"):
        for x, y in (bits.view(dtype), generator.normal(size=(2, 20000)).astype(dtype)):
            for z in (-(x * y), np.roll(x, 1), y * dtype(2e-8), np.zeros_like(x)):
                assert np.array_equal(fused(x, y, z), exact(x, y, z), equal_nan=True)
    one, step = dtype(1), np.finfo(dtype).eps
    assert fused(one + step, one - step, -one) == -(step**2) != (one + step) * (one - step) - one
