"""Kernels for subgraphs composed of the library's own functions, without a language model.

What a step computes is the function that the library's kernel of it hands to a block; a composed kernel calls these
functions one after the other, and is one launch: element by element, by rows, or a product of matrices and what ends
it. A subgraph that this cannot do says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch

from generate.kernel_library import KERNELS, Library
from generate.subgraphs.asking import Uncomposable
from generate.subgraphs.lines import sizes
from generate.subgraphs.steps import ComposedSteps
from generate.subgraphs.values import PRODUCT, ComposedValue, UsedInput
from traces.dataflow import numbers
from traces.subgraphs import Subgraph

__all__ = ["Uncomposable", "compose"]
_WIDTH = 110


def compose(subgraph: Subgraph, shapes: Sequence[Sequence[int]], library: Library | None = None) -> str:
    """The text of a kernel file for a subgraph. shapes: an example's, of its inputs. library: the kernels whose
    functions are taken, the packaged ones if it is None.

    Raises Uncomposable with the reason where blocks do not do.
    """
    steps = ComposedSteps(subgraph, shapes, library or _packaged())
    outputs = [steps.values[k] for k in subgraph.outputs]
    if any(v.expression is None for v in outputs):
        raise Uncomposable("a result that is one of its inputs, or a view of it")
    if steps.product is not None:
        body = _product(steps, outputs)
    else:
        body = _elements(steps, outputs) if steps.whole is None else _rows(steps, outputs)
    return _file(subgraph, steps, outputs, body)


@cache
def _packaged() -> Library:
    return Library(KERNELS)


def _elements(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """The lines of a wrapper that launches all element by element."""
    if len({v.like.numel() for v in (*outputs, *(u.at for u in steps.used))}) > 1:
        raise Uncomposable("results of several sizes")
    space = _space(steps, outputs)
    inputs = [_viewed(_expanded(u, _shape(steps, u.at)), _shape(steps, u.at), space) for u in steps.used]
    outs = [_viewed(f"out{k}", _shape(steps, v), space) for k, v in enumerate(outputs)]
    block = steps.functions.block("fused_elements", "fused_elements")
    steps.main.append(f"return {_tuple([_text(v) for v in outputs])}")
    return [*_allocated(steps, outputs), f"{block}(fused, {_tuple(inputs)}, {_tuple(outs)})"]


def _rows(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """The lines of a wrapper that launches all by rows."""
    assert steps.whole is not None
    whole, space = steps.whole, _shape(steps, steps.whole)
    levels = [_level(steps, v) for v in outputs]
    inputs = []
    for used in steps.used:
        tensor, row = _expanded(used, _shape(steps, used.at)), _row(steps, used.at)
        if row is None:
            dropped = used.at.level == "row" and used.at.like.dim() < whole.like.dim()
            tensor = _expanded(used, _shape(steps, used.at), always=dropped)
            ones = steps.functions.block("fused_rows", "with_ones") if dropped else ""
            tensor, row = f"{ones}({tensor}, row).expand({space})" if ones else f"{tensor}.expand({space})", "row"
        inputs.append(f"({tensor}, {row})")
    of = {name: [k for k, level in enumerate(levels) if level == name] for name in ("element", "row", "column")}
    outs = [f"(out{k}, {_row(steps, outputs[k])})" for k in of["element"]]
    told = [_tuple(inputs), _tuple(outs), _tuple([f"out{k}" for k in of["row"]])]
    main = [_text(outputs[k]) for k in (*of["element"], *of["row"])]
    if of["column"]:
        finished = [_text(outputs[k]) for k in of["column"]]
        steps.finish.append(f"return {_tuple(finished)}")
        told.append(f"({len(steps.columns)}, finish, {_tuple([f'out{k}' for k in of['column']])})")
        main += steps.columns
    steps.main.append(f"return {_tuple(main)}")
    if any(v.like.dtype == torch.float64 for v in (*steps.values, *outputs)):
        told.append("double=True")
    block = steps.functions.block("fused_rows", "fused_rows")
    if not inputs:
        raise Uncomposable("rows of no input")
    return [*_allocated(steps, outputs), f"{block}(fused, {', '.join(told)})"]


def _product(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """The lines of a wrapper that launches a product and what ends it."""
    assert steps.product is not None
    found, (a, b, bias) = steps.product
    if steps.whole is not None or not found.common.is_floating_point:
        raise Uncomposable("a product with a reduction, or of integers")
    space = _space(steps, outputs)
    size = steps.wrapper.named(f"({a.tensor}.shape[0], {b.tensor}.shape[1])")
    added = "None" if bias is None else f"{bias.tensor}.expand({size})"
    product = [a.tensor, b.tensor, added, repr(found.how["beta"]), repr(found.how["alpha"])]
    operands = [_viewed(_expanded(u, _shape(steps, u.at)), _shape(steps, u.at), space) for u in steps.used]
    dtypes = [str(v.like.dtype) for v in outputs]
    block = steps.functions.block("fused_products", "ended_product")
    texts = [_text(v) for v in outputs]
    steps.main.append(f"return {', '.join(texts if len(texts) > 1 else texts * 2)}")
    results = [f"out{k}" for k in range(len(outputs))]
    orders = _tuple([_order(steps, v) for v in outputs])
    told = f"{_tuple(product)}, {_tuple(operands)}, {space}, {_tuple(dtypes)}, {orders}"
    lines = [f"{_tuple(results)} = {block}(fused, {told})"]
    shapes = [_shape(steps, v) for v in outputs]
    return lines + [f"{out} = {out}.view({s})" for out, s in zip(results, shapes, strict=True) if s != space]


def _space(steps: ComposedSteps, outputs: list[ComposedValue]) -> str:
    """The shape over which a kernel goes: that of an input where there is one, which may lie so that no view of another
    shape can be had; results are new and lie as they should."""
    return _shape(steps, steps.used[0].at if steps.used else outputs[0])


def _order(steps: ComposedSteps, value: ComposedValue) -> str:
    """By the numbers of which operands, in turn, the memory of a result lies; -1 is the product."""
    places = {u.tensor: k for k, u in enumerate(steps.used)}
    return _tuple([str(places.get(s, -1)) for s in ((PRODUCT,) if value.reduced else value.sources)])


def _shape(steps: ComposedSteps, value: ComposedValue) -> str:
    return steps.wrapper.shape(value.shapes, steps.functions)


def _text(value: ComposedValue) -> str:
    assert value.expression is not None
    return value.expression.text


def _expanded(used: UsedInput, shape: str, always: bool = False) -> str:
    """An input as it is broadcast. always: though its shape is that already."""
    same = used.value.shapes == used.at.shapes
    return used.tensor if same and not always else f"{used.tensor}.expand({shape})"


def _viewed(tensor: str, shape: str, space: str) -> str:
    return tensor if shape == space else f"{tensor}.view({space})"


def _level(steps: ComposedSteps, value: ComposedValue) -> str:
    """Where an output belongs."""
    assert steps.whole is not None
    m, n = sizes(steps.whole, steps.row)
    if value.level == "element" and value.like.numel() != m * n:
        if value.like.numel() != m or n == m:
            raise Uncomposable("results of several sizes")
        return "row"
    return value.level


def _row(steps: ComposedSteps, value: ComposedValue) -> str | None:
    """The dimensions of a value that are a row; None of what is no element of each row and column."""
    assert steps.whole is not None
    wanted, rank = sizes(steps.whole, steps.row), value.like.dim()
    if value.level == "row" or value.like.numel() != wanted[0] * wanted[1]:
        return None
    if rank == len(steps.whole.shape) and sizes(value, steps.row) == wanted:
        return "row"
    counts = [len(steps.row), *range(rank + 1)]
    trailing = next((k for k in counts if k <= rank and sizes(value, range(rank - k, rank)) == wanted), None)
    if trailing is None or steps.row != frozenset(range(len(steps.whole.shape))) - frozenset(
        range(len(steps.whole.shape) - len(steps.row))
    ):
        raise Uncomposable("views of what is reduced that do not keep its rows together")
    return str(tuple(range(rank - trailing, rank)))


def _allocated(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    lines = []
    for k, value in enumerate(outputs):
        shape, dtype = _shape(steps, value), value.like.dtype
        if value.reduced:
            lines.append(f"out{k} = torch.empty({shape}, dtype={dtype}, device=a0.device)")
        else:
            lying = steps.functions.block("fused_elements", "lying")
            lines.append(f"out{k} = {lying}({shape}, {dtype}, {_tuple(list(value.sources))})")
    return lines


def _file(
    subgraph: Subgraph,
    steps: ComposedSteps,
    outputs: list[ComposedValue],
    body: list[str],
) -> str:
    names = [f"a{i}" for i in range(len(subgraph.inputs))]
    block = steps.functions.block("fused_elements", "expect_shapes")
    expected = f"{block}({_tuple(names)}, {tuple(a.shape for a in subgraph.inputs)})"
    dtypes = sorted({*(a.dtype for a in subgraph.inputs), *(str(v.like.dtype).removeprefix("torch.") for v in outputs)})
    results = [f"out{k}" for k in range(len(outputs))]
    parameters = [used.parameter for used in steps.used]
    if steps.product is not None:
        parameters = ["acc", *(parameters if len(parameters) > 1 else ["x0", "x1"])]
    elif steps.whole is not None:
        parameters += ["mask", "n"]
    jitted = ["@triton.jit", f"def fused({', '.join(parameters)}):", *_indented(steps.main)]
    if steps.columns:
        sums = [f"t{k}" for k in range(len(steps.columns))]
        jitted += ["", "", "@triton.jit", f"def finish({', '.join([*sums, 'm'])}):", *_indented(steps.finish)]
    imports = [
        f"from blocks.{module} import {', '.join(sorted(names))}"
        for module, names in sorted(steps.functions.blocks.items())
    ]
    schema = f"{subgraph.overload}{subgraph.schema[subgraph.schema.index('(') :]}"
    lines = [
        f'"""{schema}', "", f"{_told(subgraph)}", '"""', "",
        "import torch", "import triton", "import triton.language as tl", *imports, "",
        f"OVERLOADS = {_quoted([subgraph.overload])}", f"DTYPES = {_quoted(dtypes)}", "", "",
        *[line for text in steps.functions.texts.values() for line in (*text.split("\n"), "", "")],
        *jitted, "", "",
        f"def wrapper({', '.join(names)}):",
        *_indented([expected, *steps.wrapper.lines, *body]),
        f"    return {', '.join(results)}",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _told(subgraph: Subgraph) -> str:
    """The steps, in a line each."""
    count, lines = len(subgraph.inputs), []
    for step in subgraph.steps:
        read = ", ".join(f"a{k}" if k < len(subgraph.inputs) else f"value {k}" for k in numbers(step.arguments))
        lines.append(f"    value {count} = {step.overload}({read}, ...)"[:_WIDTH])
        count += step.results
    return "\n".join(["Composed of the library's functions, by way of:", *lines])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _quoted(items: Sequence[str]) -> str:
    return _tuple([f'"{item}"' for item in items])
