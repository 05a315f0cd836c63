"""Write a subgraph's steps as kernel lines, with the functions that the library's kernels pass to blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from generate.kernel_library import Library
from generate.subgraphs import layer_norm
from generate.subgraphs.asking import AskedOfBlock, AskedResult, Uncomposable, asked
from generate.subgraphs.lines import KernelLines
from generate.subgraphs.values import HALVES, PRODUCT, ComposedValue, KernelExpression, number, types_of
from traces.facts import tagged
from traces.overloads import base_name, bind, call, kind, resolve
from traces.subgraphs import Subgraph, SubgraphCall
from traces.values import decoded

_IN_ORDER = tagged("views_in_order")
_CASTS = tagged("casts")
_JUMPS = tagged("jumps")


class ComposedSteps(KernelLines):
    """All steps of a subgraph, as kernel lines.

    Attributes:
        values: Values by number: inputs, then the steps' results.
        product: The call to the `matmul` block and its operands; None if there is no product.
    """

    def __init__(self, subgraph: Subgraph, shapes: Sequence[Sequence[int]], library: Library) -> None:
        """Write all steps.

        Args:
            subgraph: Subgraph.
            shapes: Example shapes for its inputs.
            library: Library with the kernels whose functions are used.

        Raises:
            Uncomposable: If a step cannot be composed from blocks.
        """
        super().__init__()
        self.product: tuple[AskedOfBlock, list[ComposedValue]] | None = None
        self._library = library
        self.values = []
        for i, (shape, wanted) in enumerate(zip(shapes, subgraph.inputs, strict=True)):
            like = torch.empty(tuple(shape), dtype=getattr(torch, wanted.dtype), device="meta")
            self.values.append(ComposedValue(like, None, f"a{i}", "element", (f"a{i}.shape",), sources=(f"a{i}",)))
        for step in subgraph.steps:
            self._step(step)

    def _step(self, step: SubgraphCall) -> None:
        """Write one step, and append its results to `values`."""
        op = resolve(step.overload)
        arguments = bind(op, (), decoded(step.arguments, [v.like for v in self.values], step.overload, "meta"))
        try:
            returned = call(op, arguments)
        except (RuntimeError, NotImplementedError) as error:
            raise Uncomposable(
                f"{step.overload}: no result without memory ({str(error).partition(chr(10))[0]})"
            ) from error
        likes = returned if isinstance(returned, tuple | list) else [returned]
        find = {id(v.like): v for v in self.values}
        operands = [find[id(t)] for t in tree_leaves(arguments) if isinstance(t, torch.Tensor)]
        base = base_name(op)
        if base in _IN_ORDER or kind(op) == "view":
            results: Sequence[ComposedValue | None] = [self._view(step, arguments, operands[0], likes[0])]
        elif base in layer_norm.WRITTEN:
            results = layer_norm.WRITTEN[base](self, arguments, likes, lambda t: None if t is None else find[id(t)])
        else:
            results = self._asked(step, arguments, operands, likes)
        for value, like in zip(results, likes, strict=True):
            if value is None or like is None:
                self.values.append(ComposedValue(torch.empty(0, device="meta")))
            else:
                dtype = value.expression.dtype if value.expression else like.dtype
                value = self._laid_out(value, arguments, step)
                self.values.append(replace(value, like=torch.empty(like.shape, dtype=dtype, device="meta")))

    def _laid_out(self, value: ComposedValue, arguments: Mapping[str, Any], step: SubgraphCall) -> ComposedValue:
        """Return the value with the memory layout that the call requests.

        Raises Uncomposable for memory formats other than preserve and contiguous.
        """
        wanted = arguments.get("memory_format")
        if wanted not in (None, torch.preserve_format, torch.contiguous_format):
            raise Uncomposable(f"{step.overload} to {wanted}")
        return replace(value, reduced=value.reduced or wanted == torch.contiguous_format)

    def _asked(
        self,
        step: SubgraphCall,
        arguments: Mapping[str, Any],
        operands: list[ComposedValue],
        made: Sequence[torch.Tensor],
    ) -> list[ComposedValue | None]:
        """Write a step by the block calls that its kernel makes."""
        answer, _ = asked(self._library, step.overload, arguments)
        before: dict[int, list[ComposedValue]] = {}
        return [
            None if result is None else self._result(result, operands, like, step, before, arguments)
            for result, like in zip(answer.results, made, strict=True)
        ]

    def _view(
        self, step: SubgraphCall, arguments: Mapping[str, Any], source: ComposedValue, like: torch.Tensor
    ) -> ComposedValue:
        """Return the result of a view step that keeps the elements' order."""
        base = base_name(resolve(step.overload))
        if base not in _IN_ORDER:
            raise Uncomposable(f"{step.overload}: a view with its elements in another order")
        if base in ("alias", "detach"):
            return ComposedValue(like, *_rest(source))
        if source.level == "row" and base not in ("squeeze", "unsqueeze"):
            raise Uncomposable(f"{step.overload}: a view of one element a row")
        shape = self.wrapper.shape(source.shapes, self.functions)
        size = tuple(like.shape)
        if base in ("view", "_unsafe_view"):
            if -1 not in arguments["size"] and len(arguments["size"]) != 0:
                size = tuple(arguments["size"])
            shape_text = (
                f"{self.functions.block('fused_elements', 'viewed_shape')}({shape}, {tuple(arguments['size'])})"
            )
        elif base == "unsqueeze":
            at = arguments["dim"] % len(size)
            shape_text = f"(*{shape}[:{at}], 1, *{shape}[{at}:])"
        else:
            shape_text = self._squeezed(shape, arguments, source)
        named = self.wrapper.named(shape_text)
        tensor = f"{source.tensor}.view({named})" if source.expression is None else ""
        return ComposedValue(like, source.expression, tensor, source.level, (named,), True, source.sources)

    def _squeezed(self, shape: str, arguments: Mapping[str, Any], source: ComposedValue) -> str:
        """Return the shape after `squeeze` as source text."""
        dims = arguments.get("dim")
        if dims is None:
            raise Uncomposable("aten::squeeze of all dimensions: it decides by sizes how many there are")
        removed = {d % len(source.shape) for d in ([dims] if isinstance(dims, int) else dims)}
        if any(source.shape[d] != 1 for d in removed):
            raise Uncomposable("aten::squeeze with a size other than 1")
        remaining = [f"{shape}[{d}]" for d in range(len(source.shape)) if d not in removed]
        return f"({', '.join(remaining)}{',' if len(remaining) == 1 else ''})"

    def _result(
        self,
        result: AskedResult,
        operands: list[ComposedValue],
        like: torch.Tensor,
        step: SubgraphCall,
        made: dict[int, list[ComposedValue]],
        arguments: Mapping[str, Any],
    ) -> ComposedValue:
        """Return the value for one result of a block call; `made` caches the results by block call."""
        block_call = result.of
        if id(block_call) not in made:
            inner = [
                self._result(x, operands, torch.empty_like(like, dtype=x.of.dtypes[x.number]), step, made, arguments)
                if isinstance(x, AskedResult) else operands[x] if isinstance(x, int) else x
                for x in block_call.operands
            ]  # fmt: skip
            cast = base_name(resolve(step.overload)) in _CASTS
            jumps = base_name(resolve(step.overload)) in _JUMPS
            if block_call.kind == "elementwise":
                made[id(block_call)] = self._elementwise(block_call, inner, like, cast, jumps)
            elif block_call.kind == "matmul":
                made[id(block_call)] = [self._matmul(block_call, inner, like)]
            else:
                made[id(block_call)] = self._reduction(block_call, inner, like, arguments)
        return made[id(block_call)][result.number]

    def _elementwise(
        self, block_call: AskedOfBlock, inner: list[Any], like: torch.Tensor, cast: bool, jumps: bool
    ) -> list[ComposedValue]:
        """Write a call to `elementwise`."""
        function = block_call.functions["function"]
        assert function is not None
        at = self.combined([x for x in inner if isinstance(x, ComposedValue)], like)
        rounded = jumps or not all(d.is_floating_point for d in block_call.dtypes)
        finish = at.level == "column"
        if cast and block_call.common == block_call.dtypes[0] and function.name == "identity":
            (source,) = inner
            return [
                self.assign(self.expression(source, at).text, source.like.dtype, block_call.dtypes[0], at, cast=True)
            ]
        texts = [
            self.expression(x, at).read(block_call.common, self.functions, rounded)
            if isinstance(x, ComposedValue) else number(x, block_call.common)
            for x in (*inner, *block_call.numbers)
        ]  # fmt: skip
        identity = function.name == "identity"
        text = texts[0] if identity else f"{self.functions.take(function)}({', '.join(texts)})"
        returns_tuple = block_call.how["several"]
        if returns_tuple:
            text = self.line(text, finish)
        return [
            self.assign(f"{text}[{k}]" if returns_tuple else text, block_call.common, d, at, cast)
            for k, d in enumerate(block_call.dtypes)
        ]

    def _reduction(
        self, block_call: AskedOfBlock, inner: list[ComposedValue], like: torch.Tensor, arguments: Mapping[str, Any]
    ) -> list[ComposedValue]:
        """Write a reduction, with `folded_rows` along a row or as a sum down columns."""
        rank, reduced = block_call.how["rank"], block_call.how["reduced"]
        whole = self.combined(inner, torch.empty(inner[0].shape, dtype=block_call.common, device="meta"))
        dims = self._dimensions(arguments, rank, reduced)
        down = (
            reduced == frozenset(range(len(reduced)))
            and block_call.kind == "reduce"
            and block_call.how["kind"] == "sum"
        )
        along = not (down and block_call.common.is_floating_point)
        self.reduces(whole, dims, along)
        texts = []
        for value in inner:
            operand_dtype = block_call.common if block_call.kind == "reduce" else value.like.dtype
            text = self.expression(value, whole).read(operand_dtype, self.functions)
            opmath = types_of(block_call.common)[1]
            texts.append(text if types_of(operand_dtype)[1] == opmath else f"{text}.to({opmath})")
        numbers = [number(n, block_call.common) for n in block_call.numbers]
        mapping = block_call.functions["map"]
        mapped = texts[0] if mapping is None else f"{self.functions.take(mapping)}({', '.join([*texts, *numbers])})"
        if not along:
            total = self.add_column(mapped)
            return self._finished(block_call, [total, "m", *numbers], like, self.reduced(whole, like, dims, "column"))
        least, most = _limits(block_call.common)
        folded_rows = self.functions.block("fused_rows", "folded_rows")
        row = self.line(f'{folded_rows}({mapped}, mask, "{block_call.how["kind"]}", {least}, {most})')
        count = _COUNTS.get(block_call.how["kind"], 1)
        parts = [f"{row}[{k}]" for k in range(count)]
        if block_call.kind == "map_rows":
            function = block_call.functions["function"]
            assert function is not None
            at = ComposedValue(like, None, "", "element", whole.shapes, True, whole.sources)
            return [
                self.assign(
                    f"{self.functions.take(function)}({', '.join([*texts, *parts])})",
                    block_call.common,
                    block_call.dtypes[0],
                    at,
                )
            ]
        return self._finished(block_call, [*parts, "n", *numbers], like, self.reduced(whole, like, dims, "row"))

    def _finished(
        self, block_call: AskedOfBlock, arguments: list[str], like: torch.Tensor, at: ComposedValue
    ) -> list[ComposedValue]:
        """Write a reduction's `finish` function."""
        finish = block_call.functions["finish"]
        text = arguments[0] if finish is None else f"{self.functions.take(finish)}({', '.join(arguments)})"
        if block_call.how["several"]:
            text = self.line(text, at.level == "column")
        return [
            self.assign(f"{text}[{k}]" if block_call.how["several"] else text, block_call.common, d, at)
            for k, d in enumerate(block_call.dtypes)
        ]

    def _dimensions(self, arguments: Mapping[str, Any], rank: int, reduced: frozenset[int]) -> list[int]:
        """Return the reduced dimensions as the call lists them; [] if all are reduced and the call lists none."""
        named = arguments.get("dim")
        dims = [named] if isinstance(named, int) else list(named or [])
        if frozenset(d % max(rank, 1) for d in dims) == reduced:
            return dims
        if len(reduced) < rank:
            return sorted(reduced)
        return []

    def _matmul(self, block_call: AskedOfBlock, inner: list[Any], like: torch.Tensor) -> ComposedValue:
        """Set the kernel's product; its operands must be inputs."""
        if self.product is not None or any(v is not None and v.expression is not None for v in inner):
            raise Uncomposable("a product with computed operands")
        self.product = block_call, inner
        a, b = inner[:2]
        shape = (self.wrapper.named(f"({a.tensor}.shape[0], {b.tensor}.shape[1])"),)
        acc = KernelExpression("acc", like.dtype, like.dtype in HALVES)
        return ComposedValue(like, acc, "", "element", shape, sources=(PRODUCT,))


# Number of values that each reduction keeps per row; 1 for other kinds.
_COUNTS = {"welford": 3, "softmax": 2, "safe_softmax": 3, "minmax": 2, "sums": 2, "moments": 4}


def _rest(value: ComposedValue) -> tuple[Any, ...]:
    """Return the fields after `like` as a tuple."""
    return value.expression, value.tensor, value.level, value.shapes, value.reduced, value.sources


def _limits(dtype: torch.dtype) -> tuple[str, str]:
    """Return a dtype's minimum and maximum as source text."""
    if dtype.is_floating_point:
        return 'float("-inf")', 'float("inf")'
    return ("0", "1") if dtype == torch.bool else (str(torch.iinfo(dtype).min), str(torch.iinfo(dtype).max))
