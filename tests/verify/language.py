"""Every function of the kernel dialect, on numbers that tell one meaning from another: what it gives, as JSON.

    python -m tests.verify.language > tests/verify/language.json     # on a machine with a GPU: what hardware gives
    TRITON_INTERPRET=1 python -m tests.verify.language               # what the judge's interpreter gives

Each entry is the body of a kernel of one program that leaves 64 numbers in z. It has x and y, float32; s, float32 with
NaN, infinities, zeros, halves and denormals; i, int32 from 0 to 63; j, int32 of both signs; and scratch memory, zeroed:
`cells`, int32, and `places`, float32.
"""

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

N = 64
HEAD = """
import triton
import triton.language as tl

@triton.jit
def larger(a, b):
    return tl.where((a > b) & (b == b), a, b)

@triton.jit
def larger_with_place(a, p, b, q):
    right = (b > a) | ((b == a) & (q < p))
    return tl.where(right, b, a), tl.where(right, q, p)

@triton.jit
def line_of(a, b, c, d):
    return a * c, b * c + d
"""
KERNEL = """
@triton.jit
def {name}(x_ptr, y_ptr, s_ptr, j_ptr, cells, places, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y, s, j = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(s_ptr + i), tl.load(j_ptr + i)
{body}
    tl.store(out + i, tl.zeros([N], tl.float64) + z)
"""
WAIT = "tl.debug_barrier()"
BODIES = {
    "program_id": "z = i + tl.program_id(0) + 10 * tl.num_programs(0) + tl.num_programs(1)",
    "zeros": "z = tl.zeros([N], tl.int64) + tl.zeros_like(x) + tl.full([N], 2.5, tl.float16)",
    "cast": "z = tl.cast(x * 10, tl.int32)",
    "cast to bfloat16": "z = x.to(tl.bfloat16).to(tl.float32)",
    "cast to float16": "z = s.to(tl.float16).to(tl.float32)",
    "cast special numbers to bfloat16": "z = s.to(tl.bfloat16).to(tl.float32)",
    "cast to narrower integers": "z = j.to(tl.int8).to(tl.int32) * 1000 + j.to(tl.uint8).to(tl.int32)",
    "cast of bits": "z = x.to(tl.int32, bitcast=True)",
    "cast of bool": "z = (s.to(tl.int1)).to(tl.int32)",
    "cast to zero": 'z = s.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32)',
    "cast to zero in bfloat16": 'z = s.to(tl.bfloat16, fp_downcast_rounding="rtz").to(tl.float32)',
    "cast of unsigned": "z = j.to(tl.uint32).to(tl.float32) + j.to(tl.uint16).to(tl.int32)",
    "load": "z = tl.load(x_ptr + i, mask=i % 3 == 0, other=7.0)",
    "store": f"tl.store(places + i, x, mask=i > 9)\n{WAIT}\nz = tl.load(places + i)",
    **{
        f"atomic_{name}": f"z = tl.atomic_{name}(cells + i, j) * 2\n{WAIT}\nz += tl.load(cells + i)"
        for name in ("add", "max", "min", "and", "or", "xor", "xchg")
    },
    "atomic_max of floats": f"tl.atomic_max(places + i % 4, x)\n{WAIT}\nz = tl.load(places + i)",
    "atomic_min of floats": f"tl.atomic_min(places + i % 4, x)\n{WAIT}\nz = tl.load(places + i)",
    "atomic_cas": f"z = tl.atomic_cas(cells + i, i * 0, j) + 5\n{WAIT}\nz += tl.atomic_cas(cells + i, j, i)",
    "where": "z = tl.where(x > y, s, i)",
    "maximum": "z = tl.maximum(s, y)",
    "maximum with NaN": "z = tl.maximum(s, y, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": "z = tl.minimum(y, s, propagate_nan=tl.PropagateNan.NONE)",
    "minimum with NaN": "z = tl.minimum(y, s, propagate_nan=tl.PropagateNan.ALL)",
    "maximum of integers": "z = tl.maximum(i, j) - tl.minimum(i * 2, j)",
    "clamp": "z = tl.clamp(s, -1.0, 1.0)",
    "clamp with NaN": "z = tl.clamp(s, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL)",
    "abs": "z = tl.abs(s) + tl.abs(j) + tl.math.abs(x)",
    "ceil": "z = tl.ceil(s) * 100 + tl.math.ceil(x)",
    "floor of denormals": "z = tl.floor(-s)",
    "clamp of special numbers": "z = tl.clamp(0.0 - s, 0.0, 6.0) * 100 + tl.clamp(0.0 - s, -2.0, 2.0)",
    "floor": "z = tl.floor(s) * 100 + tl.math.floor(x)",
    **{name: f"z = tl.{name}(x)" for name in ("exp", "exp2", "sin", "cos", "erf", "sigmoid")},
    **{f"math.{name}": f"z = tl.math.{name}(x)" for name in ("exp", "exp2", "sin", "cos", "erf")},
    **{name: f"z = tl.{name}(tl.abs(x))" for name in ("log", "log2", "sqrt", "sqrt_rn", "rsqrt")},
    **{f"math.{name}": f"z = tl.math.{name}(tl.abs(x))" for name in ("log", "log2", "sqrt", "sqrt_rn", "rsqrt")},
    **{f"{name} of special numbers": f"z = tl.{name}(s)" for name in ("exp", "log", "sqrt", "rsqrt", "erf")},
    "exp of float64": "z = tl.exp(x.to(tl.float64))",
    "softmax": "z = tl.softmax(x)",
    "fma": "z = tl.fma(x, y, x) + tl.math.fma(x, y, s)",
    "fdiv": "z = tl.fdiv(x, y) + tl.math.fdiv(y, x)",
    "div_rn": "z = tl.div_rn(x, y) + tl.math.div_rn(y, x)",
    "umulhi": "z = tl.umulhi(j * 1000003, i * 1000003) + tl.math.umulhi(i * 7777777, i * 7777777)",
    "cdiv": "z = tl.cdiv(i, 7)",
    "quotients of integers": "z = j // (i - 100) * 1000 + j % (i - 100)",
    "remainder of floats": "z = x % y",
    "remainder of special numbers": "z = s % y",
    "remainder of large floats": "z = (x * 1e8) % y",
    "quotient of special numbers": "z = s / y",
    "products that wrap": "z = j * 100000 * 1000",
    "shifts": "z = (j >> 2) * 16 + (j << 3) + (j.to(tl.uint32) >> 28).to(tl.int32)",
    "bits": "z = (i & j) * 3 + (i | j) * 5 + (i ^ j) + ~i",
    "comparisons": "z = (s < y) + 2 * (s == s) + 4 * (s != s).to(tl.int32) + 8 * ((i < 9) & (tl.max(i) > 3))",
    "sum": "z = tl.sum(x) + tl.sum(tl.reshape(x, [8, 8]), 1, keep_dims=True).sum() + tl.sum((i > 3).to(tl.int32))",
    "sum that wraps": "z = tl.sum(j * 1000003)",
    "bits of unsigned": "z = (~j.to(tl.uint32)).to(tl.float64)",
    "sum of bytes": "z = tl.sum(j.to(tl.int8))",
    "max": "z = tl.max(s) * 0 + tl.max(x) + tl.max(j)",
    "max of special numbers": "z = tl.max(tl.where(s == s, s, -1.0)) + i",
    "max with NaN": "z = tl.max(s) + i",
    "min": "z = tl.min(x) + tl.min(j)",
    "min with NaN": "z = tl.min(s) + i",
    "argmax": "z = tl.argmax(i % 7, 0) * 100 + tl.argmax(x, 0)",
    "argmin": "z = tl.argmin(i % 7 - i % 3, 0) * 100 + tl.argmin(x, 0)",
    "max with indices": "a, b = tl.max(tl.reshape(x, [8, 8]), 1, return_indices=True)\nz = tl.sum(a + b)",
    "xor_sum": "z = tl.xor_sum(j, 0)",
    "reduce": "z = tl.reduce(x, 0, larger)",
    "reduce of pairs": "a, b = tl.reduce((x, i), 0, larger_with_place)\nz = a + b",
    "reduce of rows": "z = tl.sum(tl.reduce(tl.reshape(x, [8, 8]), 1, larger))",
    "associative_scan": "z = tl.associative_scan(x, 0, larger)",
    "associative_scan in reverse": "z = tl.associative_scan(x, 0, larger, reverse=True)",
    "associative_scan of pairs": "a, z = tl.associative_scan((y * 0.25, x), 0, line_of)",
    "cumsum": "z = tl.cumsum(x, 0) + tl.cumsum(i, 0, reverse=True)",
    "cumprod": "z = tl.cumprod(1 + x * 0.01, 0)",
    "sort": "z = tl.sort(x) + tl.sort(j, descending=True)",
    "flip": "z = tl.flip(x, 0)",
    "gather": "z = tl.gather(x, (i * 5) % 64, 0)",
    "histogram": "z = tl.histogram(i % 5 * 3, 64)",
    "dot": "a = tl.reshape(x, [4, 16]).to(tl.float16)\n"
    "a = tl.reshape(tl.broadcast_to(a[None, :, :], [4, 4, 16]), [16, 16])\n"
    "z = tl.reshape(tl.sum(tl.reshape(tl.dot(a, tl.trans(a)), [4, 4, 16]), 0), [64])",
    "broadcast": "a, b = tl.broadcast(tl.reshape(x, [64, 1]), tl.reshape(y, [1, 64]))\n"
    "z = tl.sum(a * b, 0) + tl.sum(a, 1)",
    "broadcast_to": "z = tl.reshape(tl.broadcast_to(tl.reshape(tl.arange(0, 8), [8, 1]), [8, 8]), [64])",
    "expand_dims": "z = tl.sum(tl.expand_dims(x, 0) * tl.expand_dims(y, 1), 1)",
    "reshape": "z = tl.sum(tl.reshape(x, [8, 8]) * tl.arange(0, 8)[None, :])",
    "view": "z = tl.sum(tl.view(x, [8, 8]))",
    "ravel": "z = tl.ravel(tl.reshape(x, [8, 8]))",
    "permute": "z = tl.ravel(tl.permute(tl.reshape(x, [4, 2, 8]), (2, 0, 1)))",
    "trans": "z = tl.ravel(tl.trans(tl.reshape(x, [4, 16])))",
    "join": "z = tl.sum(tl.join(x, y) * (tl.arange(0, 2) + 1)[None, :], 1)",
    "split": "a, b = tl.split(tl.reshape(x, [32, 2]))\nz = tl.interleave(b, a)",
    "cat": "a, b = tl.split(tl.reshape(x, [32, 2]))\nz = tl.sum(tl.cat(a, b, can_reorder=True))",
    "swizzle2d": "a, b = tl.swizzle2d(i // 8, i % 8, 8, 8, 4)\nz = a * 8 + b",
    "rand": "z = tl.rand(1234567, i)",
    "randn": "z = tl.randn(1234567, i)",
    "randint": "z = tl.randint(1234567, i)",
    "randint4x": "a, b, c, d = tl.randint4x(7, i)\nz = (a ^ b).to(tl.float64) + (c ^ d).to(tl.float64) * 2",
    "rand4x": "a, b, c, d = tl.rand4x(7, i)\nz = a + b * 2 + c * 4 + d * 8",
    "randn4x": "a, b, c, d = tl.randn4x(7, i)\nz = a + b * 2 + c * 4 + d * 8",
    "philox": "a, b, c, d = tl.philox(7, i.to(tl.uint32), 1, 2, 3)\n"
    "z = (a ^ c).to(tl.float64) + (b ^ d).to(tl.float64)",
    "range": "z = x * 0\nfor k in tl.range(0, 6, 2):\n    z += x * k\nfor k in tl.static_range(3):\n    z += y * k",
    "hints": "tl.static_assert(N == 64)\ntl.assume(tl.num_programs(0) == 1)\n"
    "z = tl.load(x_ptr + tl.max_contiguous(tl.multiple_of(i, 64), 64)) + tl.max_constancy(i // 4, 4)",
}


def source() -> str:
    """The text of a module with a kernel for each entry."""
    kernels = (
        KERNEL.format(name=f"kernel_{number}", body="\n".join(f"    {line}" for line in body.split("\n")))
        for number, body in enumerate(BODIES.values())
    )
    return HEAD + "".join(kernels)


def values(device: str) -> dict[str, list[float]]:
    """The 64 numbers of each entry."""
    import torch

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "language_kernels.py"  # Triton reads a kernel's source from its file
        path.write_text(source())
        spec = importlib.util.spec_from_file_location("language_kernels", path)
        assert spec is not None and spec.loader is not None
        kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernels)
        found = {}
        for number, name in enumerate(BODIES):
            cells = torch.zeros(N, dtype=torch.int32, device=device)
            out = torch.empty(N, dtype=torch.float64, device=device)
            arguments = [*(t.to(device) for t in _inputs()), cells, cells.float()]
            getattr(kernels, f"kernel_{number}")[(1,)](*arguments, out, N=N)
            found[name] = out.tolist()
    return found


def _inputs():
    """x, y, s and j."""
    import torch

    k = torch.arange(N)
    x = ((k * 37 % 64 - 31) / 7.5).float()
    y = ((k * 23 % 64 - 20.5) / 3.25).float()
    special = [
        float("nan"),
        float("inf"),
        -float("inf"),
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1e-40,
        -3e38,
        65504,
        65520,
    ]
    s = torch.tensor(special + [1e-8, 1.00390625]).repeat(4).float()
    return x, y, s, ((k * 41 % 64 - 32) * 1021).int()


if __name__ == "__main__":
    if os.environ.get("TRITON_INTERPRET") == "1":
        from verify.child.interpreter import mend
        from verify.child.unspecified import mend_undefined

        mend()
        mend_undefined()
        json.dump(values("cpu"), sys.stdout, indent=0)
    else:
        json.dump(values("cuda"), sys.stdout, indent=0)
