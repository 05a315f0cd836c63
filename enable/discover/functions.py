"""Catalogue entries for operators, functions, device libraries and conversions, by dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enable.discover.entries import DTYPES, FLOATS, FLOATS8, SIGNED, UNSIGNED, CatalogueEntry, flat, numbers

INTEGERS = {**SIGNED, **UNSIGNED}
SINGLE_DOUBLE = ("float32", "float64")
POSITIVE = "(k * 37 % 64 + 1.0).to(torch.{dtype})"
UNIT = "((k * 37 % 64 - 31.5) / 32).to(torch.{dtype})"
ABOVE_ONE = "((k * 37 % 64) / 16 + 1.25).to(torch.{dtype})"

# function -> inputs; all of them take float32 and float64
MATHS = {
    **dict.fromkeys(("exp", "exp2", "sin", "cos", "erf", "floor", "ceil", "sigmoid", "softmax"), ""),
    **dict.fromkeys(("log", "log2", "sqrt", "rsqrt"), POSITIVE),
}
# libdevice: function -> inputs
LIBRARY_UNARY = {
    **dict.fromkeys(("abs", "asinh", "atan", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp10", "exp2"), ""),
    **dict.fromkeys(("expm1", "floor", "nearbyint", "normcdf", "rint", "round", "sin", "sinh", "tan", "tanh"), ""),
    **dict.fromkeys(("trunc",), ""),
    **dict.fromkeys(("lgamma", "log", "log10", "log1p", "log2", "rsqrt", "sqrt"), POSITIVE),
    **dict.fromkeys(("acos", "asin", "atanh"), UNIT),
    "acosh": ABOVE_ONE,
}
LIBRARY_BINARY = ("atan2", "copysign", "div_rn", "fmod", "hypot", "nextafter", "pow")
LIBRARY_TESTS = ("isinf", "isnan", "signbit")
LIBRARY_FAST = {
    **dict.fromkeys(("fast_cosf", "fast_exp10f", "fast_expf", "fast_sinf", "fast_tanf", "fast_tanhf"), ""),
    **dict.fromkeys(("fast_log10f", "fast_log2f", "fast_logf"), POSITIVE),
}


def entries() -> Iterator[CatalogueEntry]:
    """Yield the entries."""
    yield from _operators()
    yield from _functions()
    yield from _library()
    yield from _casts()


def _operators() -> Iterator[CatalogueEntry]:
    for dtype in (*FLOATS, *INTEGERS):
        yield flat("operators", "arithmetic", "(x + y) * x - y", dtype)
        yield flat("operators", "comparison", "tl.where(x < y, x, y)", dtype)
    for dtype in FLOATS:
        yield flat("operators", "division", "x / y", dtype)
    for dtype in SINGLE_DOUBLE:
        yield flat("operators", "remainder", "x % y", dtype)
    for dtype in INTEGERS:
        divisor = f"(k % 7 + 2).to(torch.{dtype})"
        yield flat("operators", "integer division", "x // y", dtype, y=divisor)
        yield flat("operators", "remainder", "x % y", dtype, y=divisor)
        yield flat("operators", "bits", "((x & y) | (x ^ 5)) ^ ~y", dtype)
        yield flat("operators", "shifts", "(x << 2) ^ (x >> 1)", dtype)
    yield flat("operators", "bits", "(x & y) | ~x", "bool")


def _functions() -> Iterator[CatalogueEntry]:
    for function, inputs in MATHS.items():
        for dtype in SINGLE_DOUBLE:
            x: dict[str, Any] = {"x": inputs.format(dtype=dtype)} if inputs else {}
            yield flat("functions", f"tl.{function}", f"tl.{function}(x)", dtype, **x)
    yield flat("functions", "tl.sqrt_rn", "tl.sqrt_rn(x)", x=POSITIVE.format(dtype="float32"))
    for function in ("fdiv", "div_rn"):
        yield flat("functions", f"tl.{function}", f"tl.{function}(x, y)")
    for dtype in (*FLOATS, *SIGNED):
        yield flat("functions", "tl.abs", "tl.abs(x)", dtype)
    for dtype in FLOATS:
        yield flat("functions", "tl.fma", "tl.fma(x, y, x)", dtype)
        yield flat("functions", "tl.clamp", "tl.clamp(x, -1.0, 1.0)", dtype)
        for name in ("ALL", "NONE"):
            form = {"dtype": dtype, "propagate_nan": name}
            code = f"tl.maximum(x, y, propagate_nan=tl.PropagateNan.{name})"
            yield flat("functions", "tl.maximum", code, dtype, form=form)
    for dtype in (*FLOATS, *INTEGERS):
        yield flat("functions", "tl.maximum", "tl.maximum(x, y)", dtype)
        yield flat("functions", "tl.minimum", "tl.minimum(x, y)", dtype)
    for dtype in ("bool", *FLOATS, *INTEGERS):
        yield flat("functions", "tl.where", "tl.where(i % 3 == 0, x, y)", dtype)
    for dtype in ("int32", "int64", "uint32", "uint64"):
        yield flat("functions", "tl.umulhi", "tl.umulhi(x * 1000003, y * 1000003)", dtype)
    for dtype in ("int32", "int64"):
        yield flat("functions", "tl.cdiv", "tl.cdiv(x, 7)", dtype, x=f"(k * 3).to(torch.{dtype})")
    for function in ("rand", "randn", "randint"):
        result = "int32" if function == "randint" else "float32"
        yield flat("random", f"tl.{function}", f"tl.{function}(1234567, i)", result=result, form={})
        code = f"a, b, c, d = tl.{function}4x(7, i)\nz = (a + b) - (c + d)"
        yield flat("random", f"tl.{function}4x", code, result=result, form={})
    code = "a, b, c, d = tl.philox(7, i.to(tl.uint32), 1, 2, 3)\nz = (a ^ c) + (b ^ d)"
    yield flat("random", "tl.philox", code, result="uint32", form={})


def _library() -> Iterator[CatalogueEntry]:
    for dtype in SINGLE_DOUBLE:
        for function, inputs in LIBRARY_UNARY.items():
            x = {"x": inputs.format(dtype=dtype)} if inputs else {}
            yield _library_entry(function, "x", dtype, **x)
        for function in LIBRARY_BINARY:
            yield _library_entry(function, "x, y", dtype, **({"x": POSITIVE.format(dtype=dtype)}))
        for function in LIBRARY_TESTS:
            yield _library_entry(function, "x", dtype, result="int32")
    for function, inputs in LIBRARY_FAST.items():
        x = {"x": inputs.format(dtype="float32")} if inputs else {}
        yield _library_entry(function, "x", "float32", **x)
    for function in ("fast_dividef", "fast_powf"):
        yield _library_entry(function, "x, y", "float32", x=POSITIVE.format(dtype="float32"))
    yield _library_entry("finitef", "x", "float32", result="int32")
    yield _library_entry("isfinited", "x", "float64", result="int32")


def _library_entry(function: str, arguments: str, dtype: str, **details: Any) -> CatalogueEntry:
    name = f"tl.extra.libdevice.{function}"
    helpers = "from triton.language.extra import libdevice\n\n"
    code = f"libdevice.{function}({arguments})"
    if details.get("result") == "int32":
        code = f"({code} != 0).to(tl.int32)"  # libraries return other numbers for true
    return flat("libdevice", name, code, dtype, helpers=helpers, **details)


def _casts() -> Iterator[CatalogueEntry]:
    floats = {**FLOATS, **FLOATS8}
    pairs = [(a, b) for a in floats for b in floats if a != b and not (a in FLOATS8 and b in FLOATS8)]
    pairs += [pair for other in ("bool", *INTEGERS) for pair in (("float32", other), (other, "float32"))]
    pairs += [("int32", "int64"), ("int64", "int32"), ("int32", "int8"), ("int8", "int32"), ("uint8", "int32")]
    pairs += [("int64", "float64"), ("float64", "int64"), ("float16", "int32"), ("int32", "bfloat16")]
    for source, target in pairs:
        x = f"(k % 61 + 1.0).to(torch.{source})" if target.startswith("uint") else numbers(source)
        form = {"source": source, "target": target}
        yield flat("casts", "tl.cast", f"x.to(tl.{DTYPES[target]})", source, result=target, form=form, x=x)
    for source, target in (("float32", "int32"), ("float16", "int16"), ("bfloat16", "int16"), ("float64", "int64")):
        form = {"source": source, "target": target, "bitcast": "yes"}
        yield flat("casts", "tl.cast", f"x.to(tl.{target}, bitcast=True)", source, result=target, form=form)
    for mode in ("rtne", "rtz"):
        form = {"source": "float32", "target": "float8_e5m2", "rounding": mode}
        code = f'x.to(tl.float8e5, fp_downcast_rounding="{mode}")'
        yield flat("casts", "tl.cast", code, result="float8_e5m2", form=form)
