"""Catalogue entries for reductions, scans, sorting, changes of shape, matrix products and launch options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from enable.discover.entries import FLOATS, FLOATS8, CatalogueEntry, copy_of, entry, entry_name, flat, numbers

REDUCED = ("int8", "int32", "int64", *FLOATS)
HELPERS = """\
@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def larger_pair(a, p, b, q):
    return tl.where(b > a, b, a), tl.where(b > a, q, p)


@triton.jit
def line(a, b, c, d):
    return a * c, b * c + d


"""
SQUARE = "x = tl.reshape(x, [8, N // 8])\n"
# M, N, K of products; the smallest ones show which shapes the chip pads or refuses
SHAPES = (
    *((1, 16, 16), (16, 1, 16), (8, 16, 16), (16, 8, 16), (16, 16, 8), (16, 16, 16), (16, 16, 32), (32, 32, 32)),
    *((64, 64, 64), (128, 128, 32), (128, 256, 64)),
)
# name -> dtype and keywords
PRODUCTS = {
    **{dtype: (dtype, "") for dtype in ("float16", "bfloat16", "float64", *FLOATS8)},
    **{f"float32 {mode}": ("float32", f', input_precision="{mode}"') for mode in ("ieee", "tf32", "tf32x3", "bf16x3")},
    "int8": ("int8", ", out_dtype=tl.int32"),
}
# form -> what replaces `z = tl.dot(a, b)`
DOT_FORMS = {
    "accumulator": "z = tl.dot(a, b, tl.zeros([N, N], tl.float32) + 1)",
    "transposed operand": "z = tl.dot(a, tl.trans(b))",
    "float16 result": "z = tl.dot(a, b, out_dtype=tl.float16)",
    "loop": "z = tl.zeros([N, N], tl.float32)\nfor j in range(0, n):\n    z = tl.dot(a, b, z)",
    "reduction of the result": "z = tl.sum(tl.dot(a, b), 1)[:, None]",
    "two products": "z = tl.dot(tl.dot(a, b).to(tl.float16), b)",
    "softmax between two products": "s = tl.dot(a, b)\np = tl.exp(s - tl.max(s, 1)[:, None])\n"
    "z = tl.dot((p / tl.sum(p, 1)[:, None]).to(tl.float16), b)",
    "loaded in a loop": "z = tl.zeros([N, N], tl.float32)\nfor j in range(0, n):\n"
    "    z = tl.dot(tl.load(a_ptr + at + j * N * N), tl.load(b_ptr + at + j * N * N), z)",
    "masked loads in a loop": "z = tl.zeros([N, N], tl.float32)\nfor j in range(0, n):\n"
    "    z = tl.dot(tl.load(a_ptr + at + j * N * N, mask=i[None, :] < n + j, other=0.0), b, z)",
}
WARP_COUNTS, STAGES = (1, 2, 4, 8, 16, 32), (1, 2, 3, 4, 5, 6, 8)


def entries() -> Iterator[CatalogueEntry]:
    """Yield the entries."""
    yield from _reductions()
    yield from _scans()
    yield from _shapes()
    yield from _products()
    yield from _options()


def _reductions() -> Iterator[CatalogueEntry]:
    for function in ("sum", "max", "min"):
        for dtype in REDUCED:
            yield flat("reductions", f"tl.{function}", f"tl.{function}(x)", dtype)
        for form, code in (
            ("axis 0", f"tl.sum(tl.{function}({{x}}, 0))"),
            ("axis 1", f"tl.sum(tl.{function}({{x}}, 1))"),
        ):
            code = SQUARE + "z = " + code.format(x="x")
            details: dict[str, Any] = {"shrinks": False, "needs": [f"tl.{function}[dtype=float32]"]}
            yield flat("reductions", f"tl.{function}", code, form={"form": form}, **details)
    for function in ("argmax", "argmin"):
        for dtype in ("int32", *FLOATS):
            yield flat("reductions", f"tl.{function}", f"tl.{function}(x, 0)", dtype, result="int32")
    for dtype in ("int32", "int64"):
        yield flat("reductions", "tl.xor_sum", "tl.xor_sum(x, 0)", dtype)
    for dtype in ("int32", "float32"):
        yield flat("reductions", "tl.reduce", "tl.reduce(x, 0, larger)", dtype, helpers=HELPERS)
    code = "a, b = tl.reduce((x, i), 0, larger_pair)\nz = a + b"
    yield flat("reductions", "tl.reduce", code, form={"form": "pair"}, helpers=HELPERS)
    forms = {
        "keep_dims": SQUARE + "z = tl.reshape(x - tl.max(x, 1, keep_dims=True), [N])",
        "three dimensions": "x = tl.reshape(x, [2, 4, N // 8])\nz = tl.sum(tl.sum(tl.sum(x, 1), 1))",
        "return_indices": SQUARE + "a, b = tl.max(x, 1, return_indices=True)\nz = tl.sum(a + b)",
    }
    for form, code in forms.items():
        yield flat("reductions", "tl.max", code, form={"form": form}, needs=["tl.max[dtype=float32]"], shrinks=False)


def _scans() -> Iterator[CatalogueEntry]:
    for dtype in REDUCED[1:]:
        yield flat("scans", "tl.cumsum", "tl.cumsum(x, 0)", dtype, result=dtype)
    for dtype in ("int32", "float32", "float64"):
        yield flat("scans", "tl.cumprod", "tl.cumprod(x, 0)", dtype, x=f"(k % 2 * 2 - 1).to(torch.{dtype})")
        yield flat("scans", "tl.associative_scan", "tl.associative_scan(x, 0, larger)", dtype, helpers=HELPERS)
    forms = {
        "reverse": "z = tl.cumsum(x, 0, reverse=True)",
        "axis 0": SQUARE + "z = tl.reshape(tl.cumsum(x, 0), [N])",
        "axis 1": SQUARE + "z = tl.reshape(tl.cumsum(x, 1), [N])",
    }
    for form, code in forms.items():
        details: dict[str, Any] = {"needs": ["tl.cumsum[dtype=float32]"], "shrinks": False}
        yield flat("scans", "tl.cumsum", code, form={"form": form}, **details)
    code = "a, z = tl.associative_scan((y * 0.1, x), 0, line)"
    details = {"needs": ["tl.associative_scan[dtype=float32]"], "helpers": HELPERS}
    yield flat("scans", "tl.associative_scan", code, form={"form": "pair"}, **details)


def _shapes() -> Iterator[CatalogueEntry]:
    for dtype in ("int32", "int64", "float16", "float32"):
        if dtype in ("int32", "float32"):  # it takes seconds to compile
            yield flat("sorting", "tl.sort", "tl.sort(x)", dtype)
        yield flat("sorting", "tl.flip", "tl.flip(x, 0)", dtype)
        yield flat("sorting", "tl.gather", "tl.gather(x, (i * 5) % N, 0)", dtype)
    yield flat("sorting", "tl.sort", "tl.sort(x, descending=True)", form={"form": "descending"})
    yield flat("sorting", "tl.topk", "tl.sum(tl.topk(x, 8))")
    yield flat("sorting", "tl.histogram", "tl.histogram(x % 8, N)", "int32", x="k.to(torch.int32)", shrinks=False)
    codes = {
        "tl.broadcast": "a, b = tl.broadcast(x[:, None], y[None, :])\nz = tl.sum(a * b, 0)",
        "tl.broadcast_to": "z = tl.sum(tl.broadcast_to(x[:, None], [N, N]), 1)",
        "tl.expand_dims": "z = tl.sum(tl.expand_dims(x, 0) * tl.expand_dims(y, 1), 1)",
        "tl.reshape": "z = tl.reshape(tl.reshape(x, [8, N // 8]) + 1, [N])",
        "tl.view": "z = tl.sum(tl.view(x, [8, N // 8]))",
        "tl.ravel": "z = tl.ravel(tl.reshape(x, [8, N // 8]))",
        "tl.permute": "z = tl.ravel(tl.permute(tl.reshape(x, [4, 2, N // 8]), (2, 0, 1)))",
        "tl.trans": "z = tl.ravel(tl.trans(tl.reshape(x, [4, N // 4])))",
        "tl.join": "z = tl.sum(tl.join(x, y), 1)",
        "tl.split": "a, b = tl.split(tl.reshape(x, [N // 2, 2]))\nz = tl.sum(a - b)",
        "tl.interleave": "z = tl.sum(tl.reshape(tl.interleave(x, y), [N, 2]), 1)",
        "tl.cat": "z = tl.sum(tl.cat(x, y, can_reorder=True))",
        "tl.swizzle2d": "a, b = tl.swizzle2d(i // 8, i % 8, N // 8, 8, 4)\nz = x + a * 8 + b",
        "tl.zeros": "z = x + tl.zeros([N], tl.float32) + tl.zeros_like(x)",
        "tl.full": "z = x + tl.full([N], 2.5, tl.float32)",
        "tl.multiple_of": "z = tl.load(x_ptr + tl.max_contiguous(tl.multiple_of(i, N), N))",
        "tl.max_constancy": "z = tl.load(x_ptr + tl.max_constancy(i // 4, 4))",
        "tl.assume": "tl.assume(tl.num_programs(0) == 1)\nz = x",
        "tl.static_assert": "tl.static_assert(N >= 1)\nz = x",
        "tl.debug_barrier": "tl.debug_barrier()\nz = x",
        "tl.device_print": 'tl.device_print("x")\nz = x',
        "tl.device_assert": "tl.device_assert(x == x)\nz = x",
    }
    for subject, code in codes.items():
        yield flat("shapes", subject, code, form={}, shrinks=False)
    for subject in ("tl.trans", "tl.join", "tl.split", "tl.permute"):
        yield flat("shapes", subject, codes[subject], "float16", shrinks=False)


def _product(code: str, dtype: str, sizes: tuple[int, int, int], **details: Any) -> CatalogueEntry:
    rows, columns, depth = sizes
    result = "int32" if dtype == "int8" else "float64" if dtype == "float64" else "float32"
    body = (
        "m, i, l = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)\n"
        "at = m[:, None] * K + l[None, :]\n"
        "a, b = tl.load(a_ptr + at), tl.load(b_ptr + l[:, None] * N + i[None, :])\n"
        f"{code}\n"
        "tl.store(out_ptr + m[:, None] * N + i[None, :], z)"
    )
    count = 4 * max(rows * depth, depth * columns)
    tensors = {
        "a_ptr": numbers(dtype, 37, 32) + f"[:{count}]",
        "b_ptr": numbers(dtype, 23, 32) + f"[:{count}]",
        "out_ptr": f"torch.zeros({rows * columns}, dtype=torch.{result})",
    }
    if " n" in code:
        tensors["n"] = "3"
    meta = {"M": rows, "N": columns, "K": depth}
    return entry("products", "tl.dot", body, tensors, meta=meta, scale=-(-count // columns), **details)


def _products() -> Iterator[CatalogueEntry]:
    for name, (dtype, keywords) in PRODUCTS.items():
        form = {"dtype": name.partition(" ")[0]} | ({"precision": name.partition(" ")[2]} if " " in name else {})
        code = f"z = tl.dot(a, b{keywords})"
        yield _product(code, dtype, (32, 32, 32), form=form, needs=[copy_of(dtype)])
    needs = {"needs": ["tl.dot[dtype=float16]"]}
    for shape in SHAPES:
        yield _product("z = tl.dot(a, b)", "float16", shape, form={"shape": "x".join(map(str, shape))}, **needs)
    for label, code in DOT_FORMS.items():
        yield _product(code, "float16", (32, 32, 32), form={"form": label}, **needs)
    for name, kind in (("e5m2", "torch.uint8"), ("e4m3", "torch.uint8"), ("bf16", "torch.bfloat16")):
        yield _scaled_product(name, kind)


def _scaled_product(kind: str, dtype: str) -> CatalogueEntry:
    body = (
        "i, l, s = tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)\n"
        "a, b = tl.load(a_ptr + i[:, None] * K + l[None, :]), tl.load(b_ptr + l[:, None] * N + i[None, :])\n"
        "u = tl.load(s_ptr + i[:, None] * (K // 32) + s[None, :])\n"
        f'z = tl.dot_scaled(a, u, "{kind}", b, u, "{kind}")\n'
        "tl.store(out_ptr + i[:, None] * N + i[None, :], z)"
    )
    values = f"(k % 5 + 56).to({dtype})[:N * META['K']]"
    scales = "(k % 3 + 126).to(torch.uint8)[:N * META['K'] // 32]"
    tensors = {"a_ptr": values, "b_ptr": values, "s_ptr": scales, "out_ptr": "torch.zeros(N * N)"}
    meta = {"N": 32, "K": 64}
    return entry("products", "tl.dot_scaled", body, tensors, form={"format": kind}, meta=meta, scale=64)


def _options() -> Iterator[CatalogueEntry]:
    for warps in WARP_COUNTS:
        meta = {"num_warps": warps, "N": 256}
        yield flat("options", "num_warps", "tl.sum(x) + x", form={"num_warps": warps}, meta=meta, shrinks=False)
    code, needs = DOT_FORMS["loaded in a loop"], {"needs": ["tl.dot[form=loaded in a loop]"]}
    for stages in STAGES:
        made = _product(code, "float16", (32, 32, 32), form={"num_stages": stages}, **needs)
        yield _renamed(made, "num_stages", {"num_stages": stages})
    for option, values in (("num_ctas", (1, 2, 4)), ("maxnreg", (32, 128))):
        for value in values:
            yield flat("options", option, "x + 1", form={option: value}, meta={option: value}, shrinks=False)


def _renamed(made: CatalogueEntry, subject: str, options: dict[str, int]) -> CatalogueEntry:
    """Return an entry of another subject with these launch options."""
    name = entry_name(subject, made.form)
    text = made.text.replace(f'"""{made.name}"""', f'"""{name}"""', 1)
    return replace(made, name=name, subject=subject, group="options", text=text).with_meta(**options)
