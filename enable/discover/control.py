"""Catalogue entries for loops, branches and functions in kernels."""

from __future__ import annotations

from collections.abc import Iterator

from enable.discover.entries import CatalogueEntry, copy_of, entry, numbers

HELPERS = """\
@triton.jit
def twice(x):
    return x * 2


@triton.jit(noinline=True)
def thrice(x):
    return x * 3


@triton.jit
def pair(x):
    return x + 1, x - 1


@triton.jit
def early(x, n):
    if n > 2:
        return x + 1
    return x - 1


"""
# construct in Python's ast -> form -> statements that set z
FORMS = {
    "For": {
        "constant bound": "for j in range(4):\n    z += x * j",
        "runtime bound": "for j in range(n):\n    z += x * j",
        "step": "for j in range(0, n, 2):\n    z += tl.load(x_ptr + i + j)",
        "tl.range": "for j in tl.range(0, n, num_stages=2):\n    z += tl.load(x_ptr + i + j * N)",
        "tl.range with an unroll factor": "for j in tl.range(0, n, loop_unroll_factor=2):\n    z += x * j",
        "tl.range flattened": "for j in tl.range(0, n, flatten=True):\n    for m in range(n):\n        z += x * m + j",
        "tl.static_range": "for j in tl.static_range(4):\n    z += x * j",
        "nested": "for j in range(n):\n    for m in range(j):\n        z += x * m",
        "two carried values": "w = x\nfor j in range(n):\n    z, w = z + w, w * 0.5",
        "carried pointer": "p = x_ptr + i\nfor j in range(n):\n    z += tl.load(p)\n    p += N",
        "int64 bound": "for j in range(tl.cast(n, tl.int64)):\n    z += x * j",
        "branch inside": "for j in range(n):\n    if j % 2 == 0:\n        z += x\n    else:\n        z -= x * 2",
        "reduction inside": "for j in range(n):\n    z += tl.sum(x, 0) * j",
    },
    "While": {
        "runtime condition": "j = 0\nwhile j < n:\n    z += x * j\n    j += 1",
        "condition on data": "j = tl.max(z, 0)\nwhile j < 8.0:\n    z += tl.abs(x) + 1\n    j = tl.max(z, 0)",
    },
    "If": {
        "scalar": "if n > 2:\n    z = x + 1\nelse:\n    z = x - 1",
        "constexpr": "if N > 2:\n    z = x + 1\nelse:\n    z = x - 1",
        "nested": "if n > 2:\n    if n > 3:\n        z = x + 1\n    else:\n        z = x + 2",
        "loaded condition": "if tl.load(x_ptr) > 0:\n    z = x + 1",
        "store inside": "if n > 2:\n    tl.store(out_ptr + i + N, x)",
        "and, or": "if (n > 2 and n < 9) or n == 77:\n    z = x * 3",
    },
    "IfExp": {"scalar": "z = x * (2 if n > 2 else 3)", "constexpr": "z = x * (2 if N > 2 else 3)"},
    "Call": {
        "function": "z = twice(twice(x))",
        "noinline function": "z = x * thrice(n)",
        "tuple result": "a, b = pair(x)\nz = a * b",
        "early return": "z = early(x, n)",
    },
    "Assert": {"static": "tl.static_assert(N > 0)\nz = x"},
    "Return": {"of the kernel": "tl.store(out_ptr + i + N, x)\nif n > 2:\n    return"},
    "Tuple": {"of blocks": "t = (x, x + 1)\nz = t[0] * t[1]"},
    "ListComp": {"of constants": "t = [j * 2 for j in (1, 2, 3)]\nz = x * t[2]"},
    "JoinedStr": {"in an assertion": 'tl.static_assert(N > 0, f"{N} elements")\nz = x'},
}


def entries() -> Iterator[CatalogueEntry]:
    """Yield the entries."""
    for construct, forms in FORMS.items():
        for form, code in forms.items():
            yield _entry(construct, form, code)


def _entry(construct: str, form: str, code: str) -> CatalogueEntry:
    tensors = {"x_ptr": numbers("float32"), "out_ptr": "torch.zeros(N * 2)", "n": "5"}
    body = f"i = tl.arange(0, N)\nx = tl.load(x_ptr + i)\nz = x * 0\n{code}\ntl.store(out_ptr + i, z)"
    helpers = HELPERS if construct == "Call" else ""
    needs = [copy_of("float32")]
    return entry("control", construct, body, tensors, form={"form": form}, helpers=helpers, scale=8, needs=needs)
