"""The three kernel files that every prompt shows are right: values, dtypes, shapes and strides as ATen gives them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "generate" / "examples"
PRELUDE = """
import runpy, sys, torch
from itertools import product

wrapper = runpy.run_path(sys.argv[1])["wrapper"]
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)
t = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0)) * 3
SHAPES = (t, t.permute(2, 0, 1), t[:, ::2], t[0, 0, 0], t[:0], t[0, :, :1].expand(5, 4), t.repeat(36, 1, 1).flatten())

def check(got, want, what):
    form = [(x.shape, x.dtype, x.stride()) for x in (got, want)]
    assert form[0] == form[1], (what, form)
    bound = 2e-2 if want.dtype in (torch.float16, torch.bfloat16) else 1e-5
    torch.testing.assert_close(got, want, equal_nan=True, rtol=bound, atol=bound, msg=lambda m: f"{what}: {m}")
"""
BODIES = {
    "exp": """
for dtype, x in product(DTYPES, SHAPES):
    x = x.to(dtype)
    check(wrapper(x), torch.exp(x), (dtype, x.shape))
out = torch.empty(2, 5, 3).permute(2, 1, 0)
assert wrapper(t, out=out) is out
torch.testing.assert_close(out, torch.exp(t))
""",
    "argmax": """
for dtype, x in product(DTYPES[::2], SHAPES):
    x = x.to(dtype)
    if dtype is torch.bfloat16 and x.dim() > 1:
        continue
    for dim, keep in product((None, *range(-1, x.dim())), (False, True)):
        if x.numel() == 0 and (dim is None or x.size(dim) == 0):
            continue
        check(wrapper(x, dim, keep), torch.argmax(x, dim, keep), (dtype, x.shape, dim, keep))
nan, inf = float("nan"), float("inf")
x = torch.tensor([[1, nan, 3, nan], [5.0, 5, 2, 5], [-inf, -inf, -inf, -inf]])
check(wrapper(x, 1), torch.argmax(x, 1), "special values")
check(wrapper(x), torch.argmax(x), "special values")
""",
    "diag": """
matrices = (t[0], t[0].t(), t[0, :, 0], t[0, :, 0][::2], t[0, :0, 0], t[0, :1], t.repeat(2, 1, 1).flatten()[:40])
for dtype, x, diagonal in product(DTYPES[::2], matrices, (-9, -1, 0, 2)):
    x = x.to(dtype)
    if x.dim() == 2 and not -x.size(0) <= diagonal <= x.size(1):
        continue
    check(wrapper(x, diagonal), torch.diag(x, diagonal), (dtype, x.shape, diagonal))
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_example_is_right(name):
    program = [sys.executable, "-c", PRELUDE + BODIES[name], str(EXAMPLES / f"{name}.py")]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    result = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
