"""Productions for elementwise operations: arithmetic with mixed types, casts, comparisons, bits, and math functions."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.differential.dtypes import (
    BITS,
    BOOL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGN_OF_ZERO,
    SIGNED,
    UNSIGNED,
    Value,
    promote,
    promote_number,
)
from benchmarks.differential.grammar import Grammar

SINGLES = ("float32", "float64")  # types that the math functions take


def arithmetic(g: Grammar) -> Value:
    """Emit a sum, difference or product; the second operand is a tensor or a number."""
    a, operator = g.pick(), g.random.choice("+-*")
    operands, dtype = [a], a.dtype
    if g.random.random() < 0.35:
        text = g.number(a.dtype if a.is_float or g.random.random() < 0.6 else "float32")
        is_float = "." in text or "e" in text
        dtype = promote_number(a.dtype, is_float)
        right, left = text, a.name
        if g.random.random() < 0.3:
            left, right = right, left
        if a.dtype in UNSIGNED and text.startswith("-") and not is_float:
            left, right = a.name, "3"
    else:
        b = other_operand(g, (*NUMBERS, BOOL) if operator == "*" else NUMBERS)
        operands, dtype = [a, b], promote(a.dtype, b.dtype)
        left, right = a.name, g.aligned(b)
    return combined(g, operator, left, right, dtype, operands)


def combined(
    g: Grammar, operator: str, left: str, right: str, dtype: str, operands: list[Value], target: Value | None = None
) -> Value:
    """Emit a sum, difference or product, with the contraction that a compiler may choose."""
    products = [g.aligned(v) for v in operands if v.product and v.is_float] if operator in "+-" else []
    allowance = "contraction" if products and dtype in FLOATS else ""
    value = g.emit(f"{left} {operator} {right}", dtype, g.shape, operands, allowance, products, target)
    product = dtype in FLOATS and (operator == "*" or any(v.product for v in operands))
    return Value(value.name, dtype, value.shape, value.taints, product)


def other_operand(g: Grammar, dtypes: tuple[str, ...] = NUMBERS, exact: bool = False) -> Value:
    """Return a second operand: one in the main shape, or a smaller one that broadcasts."""
    smaller = [
        v
        for v in g.values
        if v.shape != g.shape and (not v.shape or len(g.shape) == 2 and v.shape in ((g.shape[0],), (g.shape[1],)))
        if v.dtype in dtypes and (not exact or not v.taints)
    ]
    if smaller and g.random.random() < 0.3:
        return g.random.choice(smaller)
    return g.pick(dtypes, exact=exact)


def division(g: Grammar) -> Value:
    """Emit a true division; integers are divided as float32."""
    a, b = g.pick(), g.pick(exact=True)
    if not a.is_float and not b.is_float and (a.dtype in SIGNED) != (b.dtype in SIGNED):  # Triton refuses such pairs
        b = g.cast(b, a.dtype)
    dtype = promote(a.dtype, b.dtype, division=True)
    dtype = dtype if dtype in FLOATS else "float32"
    name = g.random.choice(("/", "fdiv")) if a.is_float and b.is_float and a.dtype == b.dtype else "/"
    text = f"tl.fdiv({a.name}, {b.name})" if name == "fdiv" and dtype == a.dtype else f"{a.name} / {b.name}"
    return g.emit(text, dtype, g.shape, [a, b], "division" if dtype == "float32" else "")


def integer_division(g: Grammar) -> Value:
    """Emit a quotient or remainder; both integers are signed, or both are unsigned."""
    family = g.random.choice((SIGNED, UNSIGNED))
    a, b = g.pick(family, exact=True), g.pick(family, exact=True)
    divisor = f"{'divisor' if family is SIGNED else 'natural_divisor'}({b.name})"
    if g.random.random() < 0.3:
        return g.emit(f"{a.name} {g.random.choice(('//', '%'))} 7", a.dtype, g.shape, [a])
    return g.emit(f"{a.name} {g.random.choice(('//', '%'))} {divisor}", promote(a.dtype, b.dtype), g.shape, [a, b])


def float_remainder(g: Grammar) -> Value:
    """Emit a float remainder; the operands are small whole numbers, so that each step is exact."""
    a, b = g.pick(SIGNED, exact=True), g.pick(SIGNED, exact=True)
    dtype = g.random.choice(SINGLES)
    x = f"({a.name}.to(tl.int32) % 1000).to(tl.{dtype})"
    y = f"(divisor({b.name}.to(tl.int32) % 100)).to(tl.{dtype})"
    return g.emit(f"{x} % {y}", dtype, g.shape, [a, b])


def bitwise(g: Grammar) -> Value:
    """Emit an and, or, or exclusive or."""
    a, b = g.pick(INTEGERS), other_operand(g, INTEGERS)
    return g.emit(f"{a.name} {g.random.choice('&|^')} {g.aligned(b)}", promote(a.dtype, b.dtype), g.shape, [a, b])


def shift(g: Grammar) -> Value:
    """Emit a shift by less than the width."""
    a = g.pick(INTEGERS)
    b = g.pick([a.dtype])
    return g.emit(f"{a.name} {g.random.choice(('<<', '>>'))} {g.masked_bits(b)}", a.dtype, g.shape, [a, b])


def sign(g: Grammar) -> Value:
    """Emit a negation, complement, or absolute value."""
    operator = g.random.choice(("-", "~", "abs"))
    if operator == "~":
        a = g.pick([dtype for dtype in INTEGERS if dtype != "int16"])  # its sign may be lost
        return g.emit(f"~{a.name}", a.dtype, g.shape, [a])
    a = g.pick((*SIGNED, *FLOATS))
    if a.dtype == "int16":  # a GPU does not wrap what becomes of -32768 (docs/results/differential.md)
        a = g.emit(f"tl.maximum({a.name}, -32767)", a.dtype, g.shape, [a])
    if operator == "-":  # Triton 3.6 subtracts from zero
        scales = [a.name] if a.product and a.is_float else []
        value = g.emit(f"-{a.name}", a.dtype, g.shape, [a], "contraction" if scales else "", scales)
    else:
        value = g.emit(f"tl.abs({a.name})", a.dtype, g.shape, [a])
    return Value(value.name, value.dtype, value.shape, value.taints, a.product)


def comparison(g: Grammar) -> Value:
    """Emit a comparison with another value or a number."""
    a = g.pick(NUMBERS, exact=True)
    operator = g.random.choice(("<", "<=", ">", ">=", "==", "!="))
    if g.random.random() < 0.4:
        text = g.number(a.dtype).lstrip("-" if a.dtype in UNSIGNED else "")
        return g.emit(f"{a.name} {operator} {text}", BOOL, g.shape, [a])
    b = other_operand(g, NUMBERS, exact=True)
    return g.emit(f"{a.name} {operator} {g.aligned(b)}", BOOL, g.shape, [a, b])


def logic(g: Grammar) -> Value:
    """Emit an operation on bools."""
    a, b = condition(g), condition(g)
    operator = g.random.choice("&|^~")
    if operator == "~":
        return g.emit(f"~{a.name}", BOOL, g.shape, [a])
    return g.emit(f"{a.name} {operator} {b.name}", BOOL, g.shape, [a, b])


def condition(g: Grammar) -> Value:
    """Return a bool in the main shape."""
    known = [v for v in g.values if v.dtype == BOOL and v.shape == g.shape]
    return g.random.choice(known) if known and g.random.random() < 0.7 else g.keep(comparison(g))


def where(g: Grammar) -> Value:
    """Emit a selection by a bool."""
    c, a, b = condition(g), g.pick(), other_operand(g)
    value = g.emit(f"tl.where({c.name}, {a.name}, {g.aligned(b)})", promote(a.dtype, b.dtype), g.shape, [c, a, b])
    return Value(value.name, value.dtype, value.shape, value.taints, a.product or b.product)


def extremum(g: Grammar) -> Value:
    """Emit a maximum, minimum or clamp that propagates NaN or does not."""
    nan = g.random.choice(("", ", propagate_nan=tl.PropagateNan.ALL", ", propagate_nan=tl.PropagateNan.NONE"))
    if g.random.random() < 0.25:
        a = g.pick(["float32"])  # LLVM has no instruction for a clamp of float64
        low, high = g.random.choice((("-1.0", "1.0"), ("0.0", "6.0"), ("-3e38", "0.25")))
        value = g.emit(f"tl.clamp({a.name}, {low}, {high}{nan})", a.dtype, g.shape, [a], SIGN_OF_ZERO)
        return with_sign_of_zero(g, value, [a])
    a, b = g.pick(), g.pick()
    if (a.dtype == "bfloat16") != (b.dtype == "bfloat16"):  # versions of Triton promote such pairs differently
        a, b = (g.cast(v, "float32") if v.dtype == "bfloat16" else v for v in (a, b))
    dtype = promote(a.dtype, b.dtype)
    nan = nan if dtype in FLOATS else ""
    text = f"tl.{g.random.choice(('maximum', 'minimum'))}({a.name}, {b.name}{nan})"
    if dtype == "bfloat16":  # Triton 3.6 returns float32
        text, dtype = f"{text}.to(tl.float32)", "float32"
    value = g.emit(text, dtype, g.shape, [a, b], SIGN_OF_ZERO)
    return with_sign_of_zero(g, value, [a, b])


def with_sign_of_zero(g: Grammar, value: Value, operands: list[Value]) -> Value:
    """Return the value; it may be a product if an operand may be one."""
    product = any(v.product for v in operands)
    return Value(value.name, value.dtype, value.shape, value.taints, product and value.is_float)


def math(g: Grammar) -> Value:
    """Emit a function with one float argument."""
    x = g.pick(SINGLES, exact=True)
    name = g.random.choice(
        ("exp", "exp2", "log", "log2", "sin", "cos", "erf", "sqrt", "rsqrt", "sigmoid", "floor", "ceil", "sqrt_rn")
    )
    if name == "sqrt_rn":
        x = g.pick(["float32"], exact=True)
    if name in ("floor", "ceil", "sqrt_rn"):
        return g.emit(f"tl.{name}({x.name})", x.dtype, g.shape, [x])
    value = g.emit(f"tl.{name}({x.name})", x.dtype, g.shape, [x])
    if name in ("exp", "sigmoid"):
        scale = f'tl.where(tl.abs({value.name}) < float("inf"), {value.name} * {x.name}, 0.0)'
        return renoised(g, value, name, scale)
    return renoised(g, value, name)


def renoised(g: Grammar, value: Value, allowance: str, *scales: str) -> Value:
    """Give the last line an allowance whose magnitudes need its own result."""
    line = g.lines.pop()
    noise = f"{value.name} = perturb({', '.join((value.name, repr(allowance), *scales))})"
    g.write(line.text.lstrip(), noise)
    return Value(value.name, value.dtype, value.shape, value.taints | {allowance}, value.product)


def rounded_math(g: Grammar) -> Value:
    """Emit a function that is rounded correctly: fma, div_rn, umulhi."""
    name = g.random.choice(("fma", "div_rn", "umulhi"))
    if name == "umulhi":
        a = g.pick(("int32", "int64", "uint32", "uint64"))
        b = g.pick([a.dtype])
        return g.emit(f"tl.umulhi({a.name}, {b.name})", a.dtype, g.shape, [a, b])
    if name == "div_rn":
        a, b = g.pick(["float32"]), g.pick(["float32"], exact=True)
        return g.emit(f"tl.div_rn({a.name}, {b.name})", "float32", g.shape, [a, b])
    dtype = g.random.choice(("float16", "float32", "float32", "float64"))
    a, b, c = (g.pick([dtype], fresh=True) for _ in range(3))
    return g.emit(f"tl.fma({a.name}, {b.name}, {c.name})", dtype, g.shape, [a, b, c])


def cast(g: Grammar) -> Value:
    """Emit a conversion between any two types."""
    a = g.pick((*NUMBERS, BOOL), exact=True)
    return g.cast(a, g.random.choice([dtype for dtype in (*NUMBERS, BOOL) if dtype != a.dtype]))


def truncation(g: Grammar) -> Value:
    """Emit a conversion to a narrower float, rounded towards zero."""
    a = g.pick(["float32"], exact=True)
    dtype = g.random.choice(("float16", "bfloat16"))
    return g.emit(f'{a.name}.to(tl.{dtype}, fp_downcast_rounding="rtz")', dtype, g.shape, [a])


def bitcast(g: Grammar) -> Value:
    """Emit a bitcast; a NaN has defined bits only if it was loaded."""
    raw = [v for v in g.values if v.shape == g.shape and v.dtype != BOOL and (v.raw or not v.is_float)]
    if not raw:
        return cast(g)
    a = g.random.choice(raw)
    dtype = g.random.choice([d for d in NUMBERS if BITS[d] == BITS[a.dtype] and d != a.dtype])
    return g.emit(f"{a.name}.to(tl.{dtype}, bitcast=True)", dtype, g.shape, [a])


ELEMENTWISE: dict[str, tuple[Callable[[Grammar], Value], ...]] = {
    "arithmetic": (arithmetic, arithmetic, arithmetic, division, sign, where),
    "integers": (integer_division, integer_division, bitwise, shift, shift, float_remainder, sign),
    "casts": (cast, cast, cast, truncation, bitcast),
    "comparisons": (comparison, logic, where, extremum, extremum),
    "math": (math, math, math, rounded_math, division),
}
ANY = tuple(production for group in ELEMENTWISE.values() for production in group)
