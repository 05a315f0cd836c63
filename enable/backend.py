"""Run a model's graphs on the library's kernels: `torch.compile(model, backend="enablekit")`.

The forward and backward graphs that PyTorch makes of a model are bound to kernels once. After that they are lists of
launches (enable/serve/graphs.py). Calls that no kernel serves go to PyTorch's own kernels. Calls that draw random
numbers run one by one.

Options `unverified`, `library`, `workspace` and `native` are those of `enable.library.register`. `cuda_graphs` replays
launches as CUDA graphs if sizes are fixed. `fused` serves subgraphs of a graph by one kernel each
(enable/fuse/substitution.py). The kernels are selected once per process for equal options.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

from enable.chips import bring_up
from enable.fuse.copies import drop_copies
from enable.fuse.substitution import FusedKernels, Substitution, substitute
from enable.library import select
from enable.options import WORKSPACE
from enable.serve.entries import Entry
from enable.serve.graphs import Graph
from enable.serve.native import native_way
from enable.serve.server import Server
from enable.workspace import Workspace
from generate.kernel_library import Library
from traces import UserError
from traces.arguments import check_values
from traces.errors import choose_from

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CompileOptions:
    """The options of the backend; the module's docstring explains them."""

    unverified: bool = False
    library: Library | str | PathLike[str] | None = None
    workspace: str | PathLike[str] | None = None
    cuda_graphs: bool = False
    native: bool | None = None
    fused: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CompileOptions:
        """Return the options. Raise UserError for an unknown one and for a value of a wrong type."""
        names = [field.name for field in fields(cls)]
        if unknown := sorted(options.keys() - {*names}):
            raise UserError(f"unknown option {unknown[0]!r} of backend enablekit{choose_from(unknown[0], names)}")
        check_values(cls, options, "options of backend enablekit")
        return cls(**options)


class LiveGraphs:
    """The graphs of compiled functions that still exist, in the order in which they were made."""

    def __init__(self) -> None:
        self._references: list[weakref.ref[Graph]] = []
        self.made = 0  # number of graphs made so far, and so the next one's number

    def append(self, graph: Graph) -> None:
        """Add a graph and drop those of functions that no longer exist."""
        self._references = [reference for reference in self._references if reference() is not None]
        self._references.append(weakref.ref(graph))
        self.made += 1

    def clear(self) -> None:
        """Forget every graph and restart the numbers at 0."""
        self._references, self.made = [], 0

    def __iter__(self) -> Iterator[Graph]:
        return (graph for reference in self._references if (graph := reference()) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


graphs = LiveGraphs()


def substitutions() -> list[Substitution]:
    """Return the outcome for each subgraph in the live graphs."""
    return [substitution for graph in graphs for substitution in graph.substitutions]


def enablekit(module: GraphModule, inputs: Sequence[Any], options: Mapping[str, Any] | None = None) -> Any:
    """Compile a graph of a model; `torch.compile` calls this.

    Args:
        module: The graph.
        inputs: Example inputs.
        options: The backend's options; see the module's docstring.

    Returns:
        The compiled function.

    Raises:
        UserError: An option is unknown, or no kernel may serve.
    """
    from torch._dynamo.backends.common import aot_autograd

    chosen = CompileOptions.of(options or {})
    device = next((x.device.type for x in inputs if isinstance(x, torch.Tensor) and x.device.type != "cpu"), "cpu")
    workspace = Path(chosen.workspace or WORKSPACE).absolute()
    library = chosen.library if isinstance(chosen.library, Library | None) else Path(chosen.library).absolute()
    server, kernels = _server(device, chosen.unverified, library, workspace, chosen.native, chosen.fused)
    cuda_graphs = _CudaGraphs(len(inputs)) if chosen.cuda_graphs and server.compiles else None

    def compiled(graph: GraphModule, example_inputs: Sequence[Any], phase: str) -> Any:
        drop_copies(graph)
        outcomes = tuple(substitute(graph, phase, graphs.made, kernels)) if kernels is not None else ()
        made = Graph(graph, server, outcomes)
        graphs.append(made)
        run = _boxed(made.run)
        return cuda_graphs.replayed(run, graph, example_inputs, phase) if cuda_graphs else run

    def compiler(phase: str) -> Callable[[GraphModule, Sequence[Any]], Any]:
        return lambda graph, example_inputs: compiled(graph, example_inputs, phase)

    return aot_autograd(
        fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference")
    )(module, inputs)


def _boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Mark a function as one that takes its inputs in a list and may empty that list."""

    def boxed(inputs: list[Any]) -> Any:
        return run(inputs)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


@cache
def _server(  # noqa: PLR0913 - one parameter per option
    device: str,
    unverified: bool,
    library: Library | Path | None,
    workspace_path: Path,
    native: bool | None,
    fused: bool,
) -> tuple[Server, FusedKernels | None]:
    """Return one server for all graphs, so that kernels are loaded once, and its kernels for subgraphs if `fused`."""
    platform = bring_up(device)
    if not isinstance(library, Library):
        library = Workspace(workspace_path).library(library, platform)
    chosen = select(None, unverified, library, workspace_path, device, platform)
    kernels = FusedKernels(library, workspace_path, device, unverified) if fused else None

    def entry(overload: str) -> Entry | None:
        return chosen.entries.get(overload) or (kernels.get(overload) if kernels else None)

    return Server(entry, device, native=native_way(device, native, Workspace(workspace_path).native)), kernels


class _CudaGraphs:
    """Replays the graphs of one compiled function with PyTorch's CUDA graph trees."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._forward = True  # True if the forward graph is replayed; otherwise no backward graph is either

    def replayed(
        self, made: Callable[[list[Any]], Any], graph: GraphModule, example_inputs: Sequence[Any], phase: str
    ) -> Any:
        """Return the graph's replay, or the graph itself after a warning with the reason."""
        from torch._dynamo.backends import cudagraphs as helpers
        from torch._inductor.cudagraph_trees import cudagraphify_impl
        from torch._inductor.cudagraph_utils import get_placeholder_info
        from torch._inductor.utils import count_tangents, num_fw_fixed_arguments

        backward = phase == "backward"
        fixed = count_tangents(graph) if backward else num_fw_fixed_arguments(self._inputs, len(example_inputs))
        reason = helpers.check_for_skip(graph, fixed) or ("" if self._forward else "its forward graph is not")
        if reason:
            log.warning("a %s graph is not replayed as a CUDA graph: %s", phase, reason)
            self._forward = self._forward and backward
            return made
        replay = cudagraphify_impl(
            made,
            list(example_inputs),
            range(fixed),
            device_index=helpers.get_device_index(graph),
            is_backward=backward,
            is_inference=phase == "inference",
            stack_traces=helpers.get_stack_traces(graph),
            placeholders=get_placeholder_info(graph.graph),
            mutated_input_idxs=helpers.find_input_mutations(graph.graph),
        )
        replay._boxed_call = True  # type: ignore[attr-defined]
        return replay
