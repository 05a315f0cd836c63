"""Productions for whole blocks: reductions, scans, products, shapes, sorting and gathering."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.differential.dtypes import BITS, FLOATS, INTEGERS, NUMBERS, SIGN_OF_ZERO, SIGNED, Shape, Value
from benchmarks.differential.elementwise import SINGLES, condition
from benchmarks.differential.grammar import Grammar

SUMMED = (*INTEGERS, "float16", *SINGLES)  # without bfloat16, which some versions of Triton widen
MAX_PRODUCT = 64  # factors of two whose product float32 holds


def _axis(g: Grammar) -> tuple[int, Shape]:
    """Return an axis, and the main shape without it."""
    axis = g.random.randrange(len(g.shape))
    return axis, g.shape[:axis] + g.shape[axis + 1 :]


def _sum_type(dtype: str) -> str:
    """Return the type in which Triton adds elements."""
    if dtype in FLOATS or BITS[dtype] >= 32:
        return dtype
    return "int32" if dtype in SIGNED else "uint32"


def total(g: Grammar) -> Value:
    """Emit a sum over one axis."""
    x, (axis, shape) = g.pick(SUMMED), _axis(g)
    if not x.is_float:
        return g.emit(f"tl.sum({x.name}, {axis})", _sum_type(x.dtype), shape, [x])
    scale = f"tl.sum(magnitude({x.name}), {axis})"
    return g.emit(f"tl.sum({x.name}, {axis})", x.dtype, shape, [x], "order of sums", [scale])


def extreme(g: Grammar) -> Value:
    """Emit a maximum or minimum over one axis."""
    x, (axis, shape) = g.pick((*INTEGERS, *FLOATS)), _axis(g)
    dtype = ("float32" if x.is_float else "int32") if BITS[x.dtype] < 32 else x.dtype
    value = g.emit(f"tl.{g.random.choice(('max', 'min'))}({x.name}, {axis})", dtype, shape, [x], SIGN_OF_ZERO)
    return Value(value.name, dtype, shape, value.taints, x.product and x.is_float)


def position(g: Grammar) -> Value:
    """Emit an argmax or argmin."""
    x, (axis, shape) = g.pick((*INTEGERS, "float16", *SINGLES), exact=True), _axis(g)
    text = f"tame({x.name})" if x.is_float else x.name
    return g.emit(f"tl.{g.random.choice(('argmax', 'argmin'))}({text}, {axis})", "int32", shape, [x])


def folded(g: Grammar) -> Value:
    """Emit a reduction with a combine function."""
    axis, shape = _axis(g)
    kind = g.random.choice(("xor_sum", "larger", "either", "pair"))
    if kind == "larger":
        x = g.pick((*INTEGERS, *SINGLES), exact=True)
        text = f"tame({x.name})" if x.is_float else x.name
        return g.emit(f"tl.reduce({text}, {axis}, larger)", x.dtype, shape, [x], SIGN_OF_ZERO if x.is_float else "")
    x = g.pick(("int32", "int64") if kind == "pair" else INTEGERS)
    if kind == "pair":
        left = g.emit("offsets", "int32", g.shape)
        first, second = g.name(), g.name()
        g.write(f"{first}, {second} = tl.reduce(({x.name}, {left.name}), {axis}, smaller_with_position)")
        g.keep(Value(first, x.dtype, shape))
        return Value(second, "int32", shape)
    text = f"tl.xor_sum({x.name}, {axis})" if kind == "xor_sum" else f"tl.reduce({x.name}, {axis}, either)"
    return g.emit(text, x.dtype, shape, [x])


def running_total(g: Grammar) -> Value:
    """Emit a cumulative sum."""
    x, (axis, _) = g.pick(SUMMED), _axis(g)
    options = f"{axis}{g.random.choice(('', ', reverse=True'))}"
    if not x.is_float:
        return g.emit(f"tl.cumsum({x.name}, {options})", _sum_type(x.dtype), g.shape, [x])
    scale = f"tl.cumsum(magnitude({x.name}), {options})"
    return g.emit(f"tl.cumsum({x.name}, {options})", x.dtype, g.shape, [x], "order of scans", [scale])


def running_product(g: Grammar) -> Value:
    """Emit a cumulative product that is exact in every order: its factors are integers or powers of two."""
    axis, _ = _axis(g)
    if g.shape[axis] <= MAX_PRODUCT and g.random.random() < 0.5:
        c = condition(g)
        return g.emit(f"tl.cumprod(tl.where({c.name}, 2.0, -0.5), {axis})", "float32", g.shape, [c])
    x = g.pick([dtype for dtype in INTEGERS if BITS[dtype] >= 32])  # Triton 3.6 does not widen the others
    return g.emit(f"tl.cumprod({x.name}, {axis})", x.dtype, g.shape, [x])


def scan(g: Grammar) -> Value:
    """Emit a scan with a combine function, forwards or in reverse."""
    axis, _ = _axis(g)
    function = g.random.choice(("larger", "either", "line"))
    reverse = g.random.choice(("", ", reverse=True"))
    if function == "line":
        x, y = g.pick(["int32"]), g.pick(["int32"])
        first, second = g.name(), g.name()
        g.write(f"{first}, {second} = tl.associative_scan(({x.name}, {y.name}), {axis}, line{reverse})")
        g.keep(Value(first, "int32", g.shape))
        return Value(second, "int32", g.shape)
    x = g.pick((*INTEGERS, *SINGLES) if function == "larger" else INTEGERS, exact=True)
    text = f"tame({x.name})" if x.is_float else x.name
    allowance = SIGN_OF_ZERO if x.is_float else ""
    return g.emit(f"tl.associative_scan({text}, {axis}, {function}{reverse})", x.dtype, g.shape, [x], allowance)


def softmax(g: Grammar) -> Value:
    """Emit a softmax over the first axis, with neither infinities nor NaN."""
    x = g.pick(["float32"], exact=True)
    value = g.emit(f"tl.softmax(tame({x.name}))", "float32", g.shape, [x], "softmax")
    scale = f"{value.name} * 100.0"
    line = g.lines.pop()
    g.write(line.text.lstrip(), f"{value.name} = perturb({value.name}, 'softmax', {scale})")
    return value


def dot(g: Grammar) -> Value:
    """Emit a matrix product: a value times the transpose of another one."""
    rows, columns = g.shape
    kinds = ["float16", "bfloat16", "float32", "float32"] + (["int8"] if columns >= 32 else [])
    dtype = g.random.choice(kinds)
    a, b = g.pick([dtype], exact=True), g.pick([dtype], exact=True)
    if dtype == "int8":
        return g.emit(f"tl.dot({a.name}, tl.trans({b.name}))", "int32", (rows, rows), [a, b])
    precision = g.random.choice(("ieee", "tf32", "")) if dtype == "float32" else ""
    option = f', input_precision="{precision}"' if precision else ""
    scale = f'tl.dot(magnitude({a.name}), tl.trans(magnitude({b.name})), input_precision="ieee")'
    if dtype != "float32":
        scale = f"tl.dot(magnitude({a.name}), tl.trans(magnitude({b.name})))"
    allowance = "dot" if dtype != "float32" or precision == "ieee" else "tf32"
    text = f"tl.dot({a.name}, tl.trans({b.name}){option})"
    return g.emit(text, "float32", (rows, rows), [a, b], allowance, [scale])


def sort(g: Grammar) -> Value:
    """Emit a sort along the last axis."""
    x = g.pick((*INTEGERS, "float16", *SINGLES), exact=True)
    text = f"tame({x.name})" if x.is_float else x.name
    option = g.random.choice(("", ", descending=True"))
    return g.emit(f"tl.sort({text}{option})", x.dtype, g.shape, [x], SIGN_OF_ZERO if x.is_float else "")


def flip(g: Grammar) -> Value:
    """Emit a reversal along one axis."""
    x, (axis, _) = g.pick(NUMBERS), _axis(g)
    return moved(g, f"tl.flip({x.name}, {axis})", x, g.shape)


def moved(g: Grammar, text: str, x: Value, shape: Shape) -> Value:
    """Emit an operation that moves elements and computes nothing, so it adds no noise."""
    name = g.name()
    g.write(f"{name} = {text}")
    return Value(name, x.dtype, shape, x.taints, x.product)


def gather(g: Grammar) -> Value:
    """Emit a gather from indices within the bounds."""
    x, i, (axis, _) = g.pick(NUMBERS), g.pick(["int32"]), _axis(g)
    return moved(g, f"tl.gather({x.name}, {i.name} & {g.shape[axis] - 1}, {axis})", x, g.shape)


def histogram(g: Grammar) -> Value:
    """Emit a histogram; a block with two dimensions is flattened."""
    x, bins = g.pick(["int32"]), g.random.choice((16, 32, 64))
    return g.emit(f"tl.histogram(tl.reshape({x.name} & {bins - 1}, [{g.size}]), {bins})", "int32", (bins,), [x])


def rearranged(g: Grammar) -> Value:
    """Emit a transposition or a reshape."""
    x = g.pick(NUMBERS)
    if len(g.shape) == 2:
        return moved(g, f"tl.trans({x.name})", x, g.shape[::-1])
    parts = g.random.choice((2, 4, 8))
    return moved(g, f"tl.reshape({x.name}, [{parts}, {g.size // parts}])", x, (parts, g.size // parts))


def joined(g: Grammar) -> Value:
    """Emit an operation that makes one block from two values, or two values from a block."""
    a = g.pick(NUMBERS)
    b = g.pick([a.dtype])
    kind = g.random.choice(("interleave", "join", "split", "cat"))
    both = Value("", a.dtype, (), a.taints | b.taints, a.product or b.product)
    shape = (*g.shape[:-1], 2 * g.shape[-1])
    if kind == "interleave":
        return moved(g, f"tl.interleave({a.name}, {b.name})", both, shape)
    if kind == "join":
        return moved(g, f"tl.reshape(tl.join({a.name}, {b.name}), [{', '.join(map(str, shape))}])", both, shape)
    if kind == "cat":
        i, j = g.pick(["int32"]), g.pick(["int32"])
        flat = (f"tl.reshape({v.name}, [{g.size}])" for v in (i, j))
        return g.emit(f"tl.sum(tl.cat({', '.join(flat)}, can_reorder=True), 0)", "int32", (), [i, j])
    first, second = g.name(), g.name()
    g.write(f"{first}, {second} = tl.split(tl.reshape({a.name}, [{g.size // 2}, 2]))")
    g.keep(Value(first, a.dtype, (g.size // 2,), a.taints, a.product))
    return Value(second, a.dtype, (g.size // 2,), a.taints, a.product)


def outer(g: Grammar) -> Value:
    """Emit an index along one axis, broadcast to the main shape."""
    if len(g.shape) == 1:
        return g.emit(f"tl.broadcast_to(tl.expand_dims(tl.program_id(0) + 3, 0), [{g.size}])", "int32", g.shape)
    rows, columns = g.shape
    row = f"tl.expand_dims(tl.arange(0, {rows}), 1)"
    text = g.random.choice(
        (f"{row} * tl.arange(0, {columns})[None, :]", f"tl.broadcast_to({row}, [{rows}, {columns}])")
    )
    return g.emit(text, "int32", g.shape)


BLOCKS: dict[str, tuple[Callable[[Grammar], Value], ...]] = {
    "reductions": (total, total, extreme, position, folded),
    "scans": (running_total, running_product, scan),
    "dots": (dot,),
    "shapes": (flip, rearranged, joined, joined, outer),
    "sorting": (sort, gather, histogram),
    "softmax": (softmax,),
}
