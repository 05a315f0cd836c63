"""Compose kernels for subgraphs from the library's own functions, without a language model.

A step computes the function that the library's kernel for it passes to a block. A composed kernel calls these
functions one after the other in a single launch. There are three forms: element by element, by rows, and a matrix
product with its epilogue. If a subgraph has none of these forms, Uncomposable gives the reason.
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
_WIDTH = 110  # maximum line length in the generated docstring


def compose(subgraph: Subgraph, shapes: Sequence[Sequence[int]], library: Library | None = None) -> str:
    """Return a kernel file's text for a subgraph.

    Args:
        subgraph: Subgraph.
        shapes: Example shapes for its inputs.
        library: Library with the kernels whose functions are used; None for the packaged one.

    Raises:
        Uncomposable: If the subgraph cannot be composed from blocks.
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
    """Return the packaged library."""
    return Library(KERNELS)


def _elements(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """Return the wrapper's lines for a launch that works element by element."""
    if len({v.like.numel() for v in (*outputs, *(u.at for u in steps.used))}) > 1:
        raise Uncomposable("results with several sizes")
    space = _space(steps, outputs)
    inputs = [_viewed(_expanded(u, _shape(steps, u.at)), _shape(steps, u.at), space) for u in steps.used]
    outs = [_viewed(f"out{k}", _shape(steps, v), space) for k, v in enumerate(outputs)]
    block = steps.functions.block("fused_elements", "fused_elements")
    steps.main.append(f"return {_tuple([_text(v) for v in outputs])}")
    return [*_allocated(steps, outputs), f"{block}(fused, {_tuple(inputs)}, {_tuple(outs)})"]


def _rows(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """Return the wrapper's lines for a launch that works by rows, with column sums if there are any."""
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
    outputs_by_level = {
        name: [k for k, level in enumerate(levels) if level == name] for name in ("element", "row", "column")
    }
    outs = [f"(out{k}, {_row(steps, outputs[k])})" for k in outputs_by_level["element"]]
    block_arguments = [_tuple(inputs), _tuple(outs), _tuple([f"out{k}" for k in outputs_by_level["row"]])]
    main = [_text(outputs[k]) for k in (*outputs_by_level["element"], *outputs_by_level["row"])]
    if outputs_by_level["column"]:
        finished = [_text(outputs[k]) for k in outputs_by_level["column"]]
        steps.finish.append(f"return {_tuple(finished)}")
        block_arguments.append(
            f"({len(steps.columns)}, finish, {_tuple([f'out{k}' for k in outputs_by_level['column']])})"
        )
        main += steps.columns
    steps.main.append(f"return {_tuple(main)}")
    if any(v.like.dtype == torch.float64 for v in (*steps.values, *outputs)):
        block_arguments.append("double=True")
    block = steps.functions.block("fused_rows", "fused_rows")
    if not inputs:
        raise Uncomposable("rows of no input")
    return [*_allocated(steps, outputs), f"{block}(fused, {', '.join(block_arguments)})"]


def _product(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """Return the wrapper's lines for a launch with a matrix product and its epilogue."""
    assert steps.product is not None
    block_call, (a, b, bias) = steps.product
    if steps.whole is not None or not block_call.common.is_floating_point:
        raise Uncomposable("a product with a reduction, or of integers")
    space = _space(steps, outputs)
    size = steps.wrapper.named(f"({a.tensor}.shape[0], {b.tensor}.shape[1])")
    added = "None" if bias is None else f"{bias.tensor}.expand({size})"
    product = [a.tensor, b.tensor, added, repr(block_call.how["beta"]), repr(block_call.how["alpha"])]
    operands = [_viewed(_expanded(u, _shape(steps, u.at)), _shape(steps, u.at), space) for u in steps.used]
    dtypes = [str(v.like.dtype) for v in outputs]
    block = steps.functions.block("fused_products", "ended_product")
    texts = [_text(v) for v in outputs]
    steps.main.append(f"return {', '.join(texts if len(texts) > 1 else texts * 2)}")
    results = [f"out{k}" for k in range(len(outputs))]
    orders = _tuple([_order(steps, v) for v in outputs])
    block_arguments = f"{_tuple(product)}, {_tuple(operands)}, {space}, {_tuple(dtypes)}, {orders}"
    lines = [f"{_tuple(results)} = {block}(fused, {block_arguments})"]
    shapes = [_shape(steps, v) for v in outputs]
    return lines + [f"{out} = {out}.view({s})" for out, s in zip(results, shapes, strict=True) if s != space]


def _space(steps: ComposedSteps, outputs: list[ComposedValue]) -> str:
    """Return the shape that the kernel iterates over: an input's shape if there is one.

    An input's layout may not allow a view in another shape. Results are new, so their layout can be chosen to fit.
    """
    return _shape(steps, steps.used[0].at if steps.used else outputs[0])


def _order(steps: ComposedSteps, value: ComposedValue) -> str:
    """Return the operand numbers that determine a result's memory layout, in order of precedence; -1 is the product."""
    numbers_by_tensor = {u.tensor: k for k, u in enumerate(steps.used)}
    return _tuple([str(numbers_by_tensor.get(s, -1)) for s in ((PRODUCT,) if value.reduced else value.sources)])


def _shape(steps: ComposedSteps, value: ComposedValue) -> str:
    """Return a value's shape as source text in the wrapper."""
    return steps.wrapper.shape(value.shapes, steps.functions)


def _text(value: ComposedValue) -> str:
    """Return a value's expression."""
    assert value.expression is not None
    return value.expression.text


def _expanded(used: UsedInput, shape: str, always: bool = False) -> str:
    """Return an input's source text, expanded to its broadcast shape; with `always`, even if the shape is the same."""
    same = used.value.shapes == used.at.shapes
    return used.tensor if same and not always else f"{used.tensor}.expand({shape})"


def _viewed(tensor: str, shape: str, space: str) -> str:
    """Return a tensor's source text, viewed in the shape that the kernel iterates over."""
    return tensor if shape == space else f"{tensor}.view({space})"


def _level(steps: ComposedSteps, value: ComposedValue) -> str:
    """Return the level of an output: "element", "row" or "column"."""
    assert steps.whole is not None
    m, n = sizes(steps.whole, steps.row)
    if value.level == "element" and value.like.numel() != m * n:
        if value.like.numel() != m or n == m:
            raise Uncomposable("results with several sizes")
        return "row"
    return value.level


def _row(steps: ComposedSteps, value: ComposedValue) -> str | None:
    """Return the dimensions that form a row in a value, as source text.

    None if the value does not have one element for each row and column.
    """
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
        raise Uncomposable("views that split the rows to reduce")
    return str(tuple(range(rank - trailing, rank)))


def _allocated(steps: ComposedSteps, outputs: list[ComposedValue]) -> list[str]:
    """Return the lines that allocate the outputs."""
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
    """Return the kernel file's text."""
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
        f'"""{schema}', "", f"{_describe(subgraph)}", '"""', "",
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


def _describe(subgraph: Subgraph) -> str:
    """Return the steps as text, one line each."""
    count, lines = len(subgraph.inputs), []
    for step in subgraph.steps:
        read = ", ".join(f"a{k}" if k < len(subgraph.inputs) else f"value {k}" for k in numbers(step.arguments))
        lines.append(f"    value {count} = {step.overload}({read}, ...)"[:_WIDTH])
        count += step.results
    return "\n".join(["Composed of the library's functions, by way of:", *lines])


def _indented(lines: Sequence[str]) -> list[str]:
    """Return the lines, indented by four blanks."""
    return [f"    {line}" for line in lines]


def _tuple(items: Sequence[str]) -> str:
    """Return a tuple's source text."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _quoted(items: Sequence[str]) -> str:
    """Return the source text for a tuple with strings."""
    return _tuple([f'"{item}"' for item in items])
