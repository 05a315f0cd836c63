"""Productions for control flow (loops, branches, device functions) and for memory (atomics, scratch memory)."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.differential.dtypes import FLOATS, NUMBERS, SIGN_OF_ZERO, SIGNED, Value
from benchmarks.differential.elementwise import SINGLES, combined, condition
from benchmarks.differential.grammar import Grammar

LOOPS = (  # `count` and `one` are runtime arguments, 3 and 1
    "for k in range({n}):",
    "for k in range(1, count):",
    "for k in range(count, 0, -1):",
    "for k in tl.range(0, count + {n}, 2):",
    "for k in tl.static_range({n}):",
    "for k in tl.range(0, {n}, num_stages={n}):",
)


def loop(g: Grammar) -> Value:
    """Emit a loop that changes one variable in each iteration."""
    accumulator = _accumulator(g)
    operands = [g.pick([accumulator.dtype]) for _ in range(2)]  # before the loop, so that their casts are outside
    if g.random.random() < 0.25:
        return _while_loop(g, accumulator, operands)
    g.write(g.random.choice(LOOPS).format(n=g.random.randint(1, 4)))
    g.indent += 1
    result = _body(g, accumulator, operands, "k")
    g.indent -= 1
    return result


def _while_loop(g: Grammar, accumulator: Value, operands: list[Value]) -> Value:
    """Emit a loop whose end depends on a runtime argument, or on a block's largest element."""
    counter = g.name("k")
    if g.random.random() < 0.5:
        g.write(f"{counter} = count")
        step = f"{counter} -= 1"
    else:
        x = g.pick(["int32"])
        axis = "" if len(g.shape) == 1 else "tl.max("
        g.write(f"{counter} = {axis}tl.max({x.name} & 1023, 0){', 0)' if axis else ''}")
        step = f"{counter} = {counter} // 8"
    g.write(f"while {counter} > 0:")
    g.indent += 1
    result = _body(g, accumulator, operands, counter)
    g.write(step)
    g.indent -= 1
    return result


def _accumulator(g: Grammar) -> Value:
    """Return a variable that a loop may assign, which begins as a copy or a constant."""
    dtype = g.random.choice(
        ("int32", "int64", "int16", "uint8", "float32", "float32", "float16", "bfloat16", "float64")
    )
    start = g.pick([dtype])
    name = g.name("a")
    if g.random.random() < 0.5:
        g.write(f"{name} = tl.full([{', '.join(map(str, g.shape))}], {g.number('uint8')}, tl.{dtype})")
        return Value(name, dtype, g.shape)
    g.write(f"{name} = {start.name}")
    return Value(name, dtype, g.shape, start.taints, start.product)


def _body(g: Grammar, accumulator: Value, operands: list[Value], counter: str) -> Value:
    """Emit one or two statements that assign the accumulator, and return it."""
    first, second = operands
    taints = accumulator.taints | first.taints | second.taints
    if not accumulator.is_float:
        operator = g.random.choice("+-*&|^")
        extra = g.random.choice(("", f" + {counter}")) if accumulator.dtype != "uint8" else ""
        text = f"({accumulator.name} {operator} ({first.name}{extra})).to(tl.{accumulator.dtype})"
        return g.emit(text, accumulator.dtype, g.shape, [accumulator, first], target=accumulator)
    kind = g.random.choice(("sum", "product", "horner", "larger"))
    if kind == "larger":
        function = g.random.choice(("maximum", "minimum"))
        text = f"tl.{function}({accumulator.name}, {first.name}).to(tl.{accumulator.dtype})"
        value = g.emit(text, accumulator.dtype, g.shape, [accumulator, first], SIGN_OF_ZERO, target=accumulator)
        return Value(value.name, value.dtype, value.shape, value.taints, accumulator.product or first.product)
    dtype, previous = accumulator.dtype, Value(g.name(), accumulator.dtype, g.shape, taints, accumulator.product)
    g.write(f"{previous.name} = {accumulator.name}")  # a contraction's error is bounded by magnitudes before the sum
    if kind == "sum":
        return combined(g, g.random.choice("+-"), previous.name, first.name, dtype, [previous, first], accumulator)
    if kind == "product":
        return combined(g, "*", previous.name, first.name, dtype, [previous, first], accumulator)
    product = combined(g, "*", previous.name, first.name, dtype, [previous, first])
    return combined(g, "+", product.name, second.name, dtype, [product, second], accumulator)


def branch(g: Grammar) -> Value:
    """Emit a branch on a scalar: an argument, a computed one, or a compile-time constant."""
    x = g.pick(["int32"])
    reduced = f"tl.max({x.name}, 0)" if len(g.shape) == 1 else f"tl.max(tl.max({x.name}, 0), 0)"
    test = g.random.choice(("pid == 0", "count > 2", "FLAG", "not FLAG", f"{reduced} > 5", "one == 1", "scale > 0"))
    a = g.pick(NUMBERS)
    b = g.pick([a.dtype])
    name = g.name()
    result = Value(name, a.dtype, g.shape)
    g.write(f"if {test}:")
    g.indent += 1
    first = combined(g, "*", a.name, b.name, a.dtype, [a, b], result)
    g.indent -= 1
    g.write("else:")
    g.indent += 1
    second = combined(g, "-", a.name, b.name, a.dtype, [a, b], result)
    g.indent -= 1
    return Value(name, a.dtype, g.shape, first.taints | second.taints, first.product or second.product)


def device_function(g: Grammar) -> Value:
    """Emit a call to another kernel function, with a flag, with several results, or with a runtime scalar."""
    kind = g.random.choice(("blend", "ordered", "scaled"))
    if kind == "scaled":
        x = g.pick([d for d in FLOATS if d != "bfloat16"])
        dtype = "float64" if x.dtype == "float64" else "float32"
        value = g.emit(f"scaled({x.name}, scale)", dtype, g.shape, [x])
        return Value(value.name, dtype, value.shape, value.taints, True)
    a = g.pick(SIGNED, exact=True)
    b = g.pick([a.dtype], exact=True)
    if kind == "blend":
        flag = g.random.choice(("FLAG", "True", "False"))
        return g.emit(f"blend({a.name}, {b.name}, {flag})", a.dtype, g.shape, [a, b])
    first, second = g.name(), g.name()
    g.write(f"{first}, {second} = ordered({a.name}, {b.name})")
    g.keep(Value(first, a.dtype, g.shape))
    return Value(second, a.dtype, g.shape)


def atomic(g: Grammar) -> Value:
    """Emit atomics with collisions, whose final memory does not depend on their order."""
    name = g.random.choice(("add", "max", "min", "and", "or", "xor", "add of floats", "max of floats", "min of floats"))
    cells = g.random.choice((1, 8, g.size))
    mask = g.random.choice(("", f", mask={condition(g).name}"))
    option = g.random.choice(("", ', sem="relaxed"', ', sem="acq_rel", scope="gpu"'))
    i = g.pick(["int32"])
    index = f"({i.name} & {cells - 1})"
    if "floats" not in name:
        dtype = g.random.choice(("int32", "int64", "int32"))
        x = g.pick([dtype]).name
    elif name.startswith("add"):  # small whole numbers, whose sums are exact
        dtype = g.random.choice(("float32", "float32", "float64", "float16"))
        x = f"({g.pick(['int32']).name} & 1).to(tl.{dtype})"
    else:
        dtype = g.random.choice(SINGLES)
        x = f"tame({g.pick([dtype], exact=True).name})"
    taints = frozenset({SIGN_OF_ZERO}) if dtype in FLOATS else frozenset()
    pointer = g.buffer("cells", dtype, cells, "whole", taints)
    g.write(f"tl.atomic_{name.split()[0]}({pointer} + {index}, {x}{mask}{option})")
    return g.emit(f"{i.name} + 0", "int32", g.shape, [i])


def exchange(g: Grammar) -> Value:
    """Emit atomics that return previous values; each lane has its own element."""
    name = g.random.choice(("xchg", "cas", "add", "max", "xor"))
    dtype = g.random.choice(("int32", "int64"))
    x = g.pick([dtype])
    pointer = g.buffer("cells", dtype, g.size * g.programs, "whole", frozenset())
    compared = f"(offsets & 3).to(tl.{dtype}), " if name == "cas" else ""
    return g.emit(f"tl.atomic_{name}({pointer} + offsets, {compared}{x.name})", dtype, g.shape, [x])


def scratch(g: Grammar) -> Value:
    """Emit a store, a barrier, and a load from another lane's element."""
    x = g.pick([d for d in NUMBERS if not d.startswith("uint") or d == "uint8"], exact=True)
    pointer = g.buffer("scratch", x.dtype, g.size * g.programs, "zeros", frozenset())
    g.write(f"tl.store({pointer} + offsets, {x.name})")
    g.write("tl.debug_barrier()")
    return g.emit(f"tl.load({pointer} + (offsets ^ {g.random.choice((1, 3, g.size - 1))}))", x.dtype, g.shape, [x])


CONTROL: dict[str, tuple[Callable[[Grammar], Value], ...]] = {
    "loops": (loop,),
    "branches": (branch, device_function),
    "atomics": (atomic, atomic, exchange, scratch),
}
