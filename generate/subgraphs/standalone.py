"""Write a graph of ATen calls as one Python file that depends only on torch and Triton."""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from generate import BLOCKS
from generate.kernel_library import Library
from generate.subgraphs.asking import ScalarFunction
from generate.subgraphs.composing import Uncomposable, compose
from generate.subgraphs.functions import TakenFunctions
from traces.overloads import base_name, bind, kind, name_of, positional
from traces.subgraphs import Subgraph
from verify.contract.kernel_file import KernelFile
from verify.linking import link

FusedCalls: TypeAlias = Mapping[str, tuple[Subgraph, list[Any]]]  # subgraph and example shapes by overload


class StandaloneForward:
    """The body of a `forward` method whose calls use kernels.

    Attributes:
        functions: Functions and imports from kernel files.
        lines: Lines of the method.
        kernels: Number of calls per overload that a kernel serves.
        by_torch: Number of calls per overload that fall back to PyTorch.
    """

    def __init__(self, library: Library) -> None:
        self.functions = TakenFunctions()
        self.lines: list[str] = []
        self.kernels: Counter[str] = Counter()
        self.by_torch: Counter[str] = Counter()
        self._library = library
        self._imports: set[str] = set()

    def write(self, module: GraphModule, inputs: Mapping[str, str], fused: FusedCalls) -> None:
        """Write the lines for a graph.

        Args:
            module: Graph.
            inputs: Source text for each placeholder.
            fused: Subgraphs among the calls, with example shapes.

        Raises:
            Uncomposable: If the graph contains a constant tensor.
        """
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.lines.append(f"{node.name} = {inputs[node.name]}")
            elif node.op == "output":
                self.lines.append(f"return {_source(node.args[0])}")
            elif node.op == "get_attr":
                raise Uncomposable(f"the constant {node.target}: a tensor that forward makes of numbers of its own")
            elif node.target is operator.getitem:
                self.lines.append(f"{node.name} = {_source(node.args[0])}[{node.args[1]!r}]")
            else:
                self._call(node, fused)

    def text(self) -> str:
        """Return the linked source: imports, functions and kernels that the lines use."""
        blocks = [f"from blocks.{m} import {', '.join(sorted(n))}" for m, n in sorted(self.functions.blocks.items())]
        plain = sorted(self._imports | {"import torch", "import triton", "import triton.language as tl"})
        return link("\n".join([*plain, *blocks, "", "", "\n\n\n".join(self.functions.texts.values()), ""]), (BLOCKS,))

    def _call(self, node: Node, fused: FusedCalls) -> None:
        """Write the line for one call."""
        assert isinstance(node.target, OpOverload)
        overload = name_of(node.target)
        arguments = bind(node.target, tuple(node.args), node.kwargs)
        args, kwargs = positional(node.target, arguments)
        argument_text = ", ".join([*map(_source, args), *(f"{name}={_source(v)}" for name, v in kwargs.items())])
        kernel = self._kernel(overload, fused)
        if kernel is not None:
            self.kernels[overload] += 1
            stem = overload.partition("::")[2].replace(".", "_")
            name = self.functions.take(ScalarFunction("wrapper", kernel), f"run_{stem}")
            self._imports |= {ast.unparse(n) for n in ast.parse(kernel.written).body if isinstance(n, ast.Import)}
        else:
            self.by_torch[overload] += kind(node.target, {}) != "view" and base_name(node.target) != "_unsafe_view"
            name = f"torch.ops.{str(node.target)}"
        self.lines.append(f"{node.name} = {name}({argument_text})")

    def _kernel(self, overload: str, fused: FusedCalls) -> KernelFile | None:
        """Return the kernel file for a call; None if the call has to fall back to PyTorch."""
        if overload in fused:
            subgraph, shapes = fused[overload]
            return self._library.parse(compose(subgraph, shapes, self._library), Path(f"{overload[7:]}.py"))
        match = self._library.match(overload)
        usable = match is not None and match.plan.direct and not match.kernel.draws and not match.kernel.calls
        return match.kernel if match is not None and usable else None


def _source(value: Any) -> str:
    """Return a graph value as Python source."""
    if isinstance(value, Node):
        return value.name
    if isinstance(value, list | tuple):
        items = ", ".join(map(_source, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
