"""Compose kernels for a problem in KernelBench's format.

The input is a file with `Model`, `get_inputs` and `get_init_inputs`; the output is a file with `ModelNew`. The file is
its author's code. It runs in a process of its own (`python -m enable.fuse.problem`) to be traced.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traces import UserError
from traces.format import write_durably
from traces.packaging import qualified

SECONDS = 600  # time limit for tracing and composing
TEMPLATE = Path(__file__).parents[1] / "templates" / "problem.py.j2"
_NO_DEVICE = ("NVIDIA driver", "not compiled with CUDA", "No CUDA GPUs", "CUDA-capable")
NAMES = ("Model", "get_inputs", "get_init_inputs")


def compose_problem(file: Path, out: Path) -> dict[str, Any]:
    """Write the file with ModelNew and return which kernels it contains.

    Args:
        file: The problem.
        out: The file to write.

    Raises:
        UserError: The file is no problem, or it cannot be traced.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file; name a problem with {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory) / "answer.json"
        words = [sys.executable, "-m", qualified("enable.fuse.problem"), str(file.resolve()), str(answer)]
        try:
            process = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{file}: was not traced within {SECONDS} s; make its inputs smaller") from error
        if not answer.is_file():
            last = (process.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(f"{file}: the process that ran it ended with status {process.returncode}: {last[:200]}")
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in result:
        raise UserError(f"{file}: {result['error']}")
    write_durably(out, [result.pop("text").encode()])
    return result


def traced(path: Path) -> dict[str, Any]:
    """Run a problem's file; return the composed text and its kernels.

    Raises:
        UserError: The file is no problem, or it cannot be traced.
    """
    names: dict[str, Any] = {"__name__": "problem", "__file__": str(path)}
    source = path.read_text(encoding="utf-8")
    _author(lambda: exec(compile(source, str(path), "exec"), names), "it raises")  # noqa: S102 - the author's own code
    if lacking := [name for name in NAMES if name not in names]:
        raise UserError(f"it has no {lacking[0]}; a problem has {', '.join(NAMES)}")
    import torch

    torch.manual_seed(0)
    model = _author(lambda: names["Model"](*names["get_init_inputs"]()), "Model raises")
    inputs = _author(lambda: list(names["get_inputs"]()), "get_inputs raises")
    if not isinstance(model, torch.nn.Module):
        raise UserError("Model is no torch.nn.Module")
    return _composed(source, path.name, model, inputs)


def _composed(source: str, name: str, model: Any, inputs: list[Any]) -> dict[str, Any]:
    """Trace the model, replace subgraphs by composed kernels and render the file."""
    import jinja2
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import free_symbols

    from enable.fuse.graphs import FlowOfGraph, replace_calls
    from generate.kernel_library import KERNELS, Library
    from generate.subgraphs.composing import Uncomposable, compose
    from generate.subgraphs.finding import PASSES, find
    from generate.subgraphs.standalone import StandaloneForward

    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    positions = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]

    def forward(tensors_by_name: dict[str, Any], tensors: list[Any]) -> Any:
        arguments = list(inputs)
        for position, tensor in zip(positions, tensors, strict=True):
            arguments[position] = tensor
        return torch.func.functional_call(model, tensors_by_name, tuple(arguments))

    with torch.no_grad():
        tensors = [inputs[i] for i in positions]
        trace = make_fx(forward, tracing_mode="fake")
        module = _author(lambda: trace(state, tensors), "its forward cannot be traced")
    example_values = [node.meta["val"] for node in module.graph.nodes if node.meta.get("val") is not None]
    if any(map(free_symbols, example_values)):
        raise UserError("its control flow depends on data (how large a tensor is); only sizes and types may decide")
    library, fused, reasons = Library(KERNELS), dict[str, Any](), dict[str, str]()
    for kinds in PASSES:
        graph, chosen = FlowOfGraph(module), []
        for occurrence in find(graph.flow, kinds):
            overload = occurrence.subgraph.overload
            shapes = [graph.flow.values[v].shape for v in occurrence.inputs]
            try:
                compose(occurrence.subgraph, shapes, library)
            except Uncomposable as error:
                reasons[overload] = str(error)
            else:
                fused[overload] = occurrence.subgraph, shapes
                chosen.append(occurrence)
        replace_calls(module, graph, chosen)
    written = StandaloneForward(library)
    placeholders = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    sources = [*(_state_source(model, key) for key in state), *(f"inputs[{i}]" for i in positions)]
    try:
        written.write(module, dict(zip(placeholders, sources, strict=True)), fused)
    except Uncomposable as error:
        raise UserError(str(error)) from error
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - no HTML
    values = {"name": name, "source": source.rstrip(), "kernels": written.text(), "lines": written.lines}
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values)
    counts: dict[str, Mapping[str, Any]] = {"kernels": written.kernels, "by_torch": +written.by_torch}
    return {"text": text, **counts, "not_composed": reasons}


def _state_source(model: Any, key: str) -> str:
    """Return the source text that reads a parameter or buffer."""
    return f'self.get_{"parameter" if key in dict(model.named_parameters()) else "buffer"}("{key}")'


def _author(run: Any, failure: str) -> Any:
    """Return the result of the author's code. Raise UserError with the first line of its error."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - the author's own code may raise anything
        line = str(error).strip().partition("\n")[0][:200]
        if any(word in str(error) for word in _NO_DEVICE):
            raise UserError(f"it needs a device that is not here ({line})") from error
        if "DataDependent" in type(error).__name__ or "data-dependent" in str(error):
            raise UserError(f"its control flow depends on data ({line}); only sizes and types may decide") from error
        raise UserError(f"{failure}: {type(error).__name__}: {line}") from error


def main(file: str, answer: str) -> None:
    """Run one problem in this process and write the result or the error as JSON."""
    try:
        result = traced(Path(file))
    except UserError as error:
        result = {"error": str(error)}
    Path(answer).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
