"""Collect PyTorch's own documentation for an operator, for prompts.

This is the public function's docstring and the docstrings it refers to. For a backward operator it includes the
derivative formulas in derivatives.yaml, which torch ships. An overload such as `aten::_log_softmax_backward_data` has
no docstring; its public function is found by removing the prefixes and suffixes that internal names add.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

BUDGET = 9_000  # maximum characters for all docstrings together
SHARE = 5_000  # maximum characters for one docstring

_NAMESPACES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "torch.Tensor")
_MOST_FORMULAS = 12  # lines
_PREFIXES = {"linalg_": "torch.linalg", "special_": "torch.special", "fft_": "torch.fft"}
# Patterns for the prefixes and suffixes that internal overloads add to the public name, with their replacements.
_ADDED = (
    (r"^_foreach_", ""),
    (r"^_+", ""),
    (r"^(native|cudnn|miopen|mkldnn|thnn|sym)_", ""),
    (r"_backward(_data|_input|_weight|_self)?$", ""),
    (r"_double_backward$", ""),
    (r"(_dense|_sparse)$", ""),
    (r"_forward(_only)?$", ""),
    (r"_jvp$", ""),
    (r"^(upsample)_.*", r"\1"),
    (r"_?\dd(_aa)?$", ""),
    (r"_(for_cpu|cpu|cuda|overrideable|impl|fused|copy|functional|helper|interface|kernel|legit|no_training)$", ""),
    (r"_(with|no)_(update|noise|sizes)$", ""),
    (r"_cachemask(_tensor_qparams)?$", ""),
    (r"^(unsafe|safe|masked|slow|fused|euclidean|int|prelu)_", ""),
    (r"^(scaled_dot_product)_(flash|efficient|fused|cudnn|math)_attention", r"\1_attention"),
    (r"^fused_(adamw?|sgd|adagrad)$", r"\1"),
    (r"_+$", ""),
)
# Public names that the patterns above do not find.
_RENAMED = {
    "convolution": "torch.nn.functional.conv2d",
    "to": "torch.Tensor.to",
    "adamw": "torch.optim.AdamW",
    "adam": "torch.optim.Adam",
    "sgd": "torch.optim.SGD",
    "adagrad": "torch.optim.Adagrad",
    "threshold": "torch.nn.functional.threshold",
    "clamp_min": "torch.clamp",
    "clamp_max": "torch.clamp",
    "upsample": "torch.nn.functional.interpolate",
    "reflection_pad": "torch.nn.functional.pad",
    "replication_pad": "torch.nn.functional.pad",
    "constant_pad_nd": "torch.nn.functional.pad",
    "im2col": "torch.nn.functional.unfold",
    "col2im": "torch.nn.functional.fold",
    "grid_sampler": "torch.nn.functional.grid_sample",
    "affine_grid_generator": "torch.nn.functional.affine_grid",
    "nll_loss2d": "torch.nn.functional.nll_loss",
    "log_sigmoid": "torch.nn.functional.logsigmoid",
    "embedding_renorm": "torch.nn.functional.embedding",
    "slow_conv_dilated": "torch.nn.functional.conv2d",
    "conv_depthwise": "torch.nn.functional.conv3d",
    "fft_c2c": "torch.fft.fftn",
    "fft_r2c": "torch.fft.rfftn",
    "fft_c2r": "torch.fft.irfftn",
    "unique2": "torch.unique",
    "unique_dim": "torch.unique",
    "unique_dim_consecutive": "torch.unique_consecutive",
    "batch_norm": "torch.nn.functional.batch_norm",
    "thnn_fused_lstm_cell": "torch.nn.LSTMCell",
    "thnn_fused_gru_cell": "torch.nn.GRUCell",
    "weight_norm": "torch.nn.utils.weight_norm",
    "euclidean_dist": "torch.cdist",
    "int_mm": "torch.mm",
    "index": "torch.Tensor.index_put_",  # torch.Tensor.index belongs to functorch and has another meaning
    "addmm_activation": "torch.addmm",
    "add_relu": "torch.add",
    "rsub": "torch.sub",
    "lshift__": "torch.bitwise_left_shift",
    "rshift__": "torch.bitwise_right_shift",
    "ilshift__": "torch.bitwise_left_shift",
    "irshift__": "torch.bitwise_right_shift",
    "is_all_true": "torch.all",
    "is_any_true": "torch.any",
    "local_scalar_dense": "torch.Tensor.item",
    "linalg__powsum": "torch.linalg.vector_norm",
    "masked_scale": "torch.nn.functional.dropout",
    "histogramdd": "torch.histogramdd",
    "unsafe_index_put": "torch.Tensor.index_put_",
    "standard_gamma": "torch.distributions.Gamma",
    "sample_dirichlet": "torch.distributions.Dirichlet",
    "dirichlet_grad": "torch.distributions.Dirichlet",
    "multi_head_attention": "torch.nn.MultiheadAttention",
    "transformer_encoder_layer_fwd": "torch.nn.TransformerEncoderLayer",
}
_NO_OPERATOR = re.compile(r"torch\.(cuda|backends|set_|get_|from|random|initial)")
_REFERENCE = re.compile(r":(?:func|class|meth|attr):`~?\.?((?:torch|Tensor)\.[\w.]+?)(?:\(\))?`")


def documentation(overload: str) -> str:
    """Return docstrings and formulas as text with about BUDGET characters at most; '' if torch has none.

    For a fused subgraph, return the description of its steps.
    """
    if not overload.startswith("aten::") and (steps := _steps(overload)):
        return steps
    base = overload.partition("::")[2].partition(".")[0]
    public = public_function(base)
    formulas = _formulas(base, public is not None)
    parts = [formulas] if formulas else []
    if public is not None:
        kind = "documentation" if public[1] in (base, base.rstrip("_")) else "documentation of the public function"
        if "backward" in base:
            kind = "documentation of the forward function"
        docstrings = _with_references(public[0], BUDGET - len(formulas))
        kinds = [kind] + ["it refers to"] * len(docstrings)
        parts += [f"## {kind}: {name}\n\n{text}" for kind, (name, text) in zip(kinds, docstrings, strict=False)]
    return "\n\n".join(parts)


def _steps(overload: str) -> str:
    """Return the description of a subgraph's steps; '' for any other operator."""
    from generate.subgraphs.describing import steps_text
    from traces.subgraphs import subgraph_of

    subgraph = subgraph_of(overload)
    return "" if subgraph is None else steps_text(subgraph)


def _formulas(base: str, documented: bool) -> str:
    """Return the formulas that call a backward operator; for an operator without a docstring, its own derivatives."""
    formulas = derivative_formulas(base)
    head = "derivative formulas that call it"
    if not formulas and not documented:
        formulas, head = own_formulas(base), "its derivative formulas"
    lines = [f"## {head} (C++ expressions of PyTorch; grad is the gradient of the output)", ""]
    return "\n".join(lines + [f"    {line}" for line in formulas]) if formulas else ""


def public_function(base: str) -> tuple[str, str] | None:
    """Return the dotted name with the docstring, and the short name that led to it; None if there is none.

    For `gelu_backward` this is (`torch.nn.functional.gelu`, `gelu`). The search is breadth-first over the names that
    result from removing one prefix or suffix at a time, so the fewest changes win.
    """
    visited = set()
    names = deque([base])
    while names:
        name = names.popleft()
        if name in visited or not name:
            continue
        visited.add(name)
        for candidate in _candidates(name):
            if docstring(candidate):
                return candidate, name
        names.extend(re.sub(pattern, new, name) for pattern, new in _ADDED)
    return None


def _candidates(name: str) -> list[str]:
    """Return the dotted names under which a short name may be public."""
    prefixed = [f"{space}.{name.removeprefix(p)}" for p, space in _PREFIXES.items() if name.startswith(p)]
    renamed = [_RENAMED[name]] if name in _RENAMED else []
    in_place = f"torch.Tensor.{name}_"  # some functional overloads are public only as an in-place method
    return [*renamed, *prefixed, *(f"{space}.{name}" for space in _NAMESPACES), in_place]


@cache
def docstring(dotted: str) -> str:
    """Return the cleaned docstring for a public torch name, cut to SHARE characters; '' if there is none."""
    import torch

    if any(part.startswith("_") for part in dotted.split(".")):
        return ""
    value: Any = torch
    for part in dotted.split(".")[1:]:
        value = getattr(value, part, None)
    text = value.__doc__ if callable(value) else None
    if not isinstance(text, str) or not text.strip():
        return ""
    return _cut(_without_pictures(inspect.cleandoc(text)), SHARE)


def _without_pictures(text: str) -> str:
    """Remove image directives, trailing blanks and repeated empty lines."""
    text = re.sub(r"^\.\. (image|plot|figure)::.*\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _cut(text: str, limit: int) -> str:
    """Cut a text at a line end, so that it has `limit` characters at most, and mark the cut."""
    if len(text) <= limit:
        return text
    return text[:limit].rpartition("\n")[0] + "\n[...]"


def _references(text: str) -> list[str]:
    """Return the torch names that a docstring refers to."""
    names = _REFERENCE.findall(text)
    return [name if name.startswith("torch.") else f"torch.{name}" for name in names]


def _with_references(root: str, left: int) -> list[tuple[str, str]]:
    """Return the docstrings for `root` and its references, nearest first, `left` characters at most.

    References form a graph with cycles, so each name is visited once. A docstring that no longer fits is
    skipped, together with references that only it has.
    """
    docstrings: list[tuple[str, str]] = []
    visited: set[str] = set()
    waiting = deque([root])
    while waiting:
        name = waiting.popleft()
        text = docstring(name)
        if name in visited or not text or text in (t for _, t in docstrings) or len(text) > left:
            continue
        visited.add(name)
        docstrings.append((name, text))
        left -= len(text)
        waiting.extend(r for r in _references(text) if not _NO_OPERATOR.match(r))
    return docstrings


def derivative_formulas(base: str) -> list[str]:
    """Return the lines in derivatives.yaml in which a forward operator's gradient calls `base`.

    Source: torchgen/packaged/autograd/derivatives.yaml, which is part of the torch distribution. The list is empty for
    forward operators.
    """
    if "backward" not in base:
        return []
    call = re.compile(rf"\b{re.escape(base)}(_symint)?\(")
    lines: list[str] = []
    for block in _derivative_blocks():
        name, *formulas = block.splitlines()
        calling = [f.strip() for f in formulas if call.search(f) and not f.lstrip().startswith(("#", "result"))]
        if calling and "backward" not in name.partition("(")[0] and len(lines) < _MOST_FORMULAS:
            lines += [name.removeprefix("- name: "), *(f"  {f}" for f in calling)]
    return lines


def own_formulas(base: str) -> list[str]:
    """Return the lines in derivatives.yaml with the gradients for all overloads of `base`; [] if there are none."""
    blocks = [b for b in _derivative_blocks() if re.split(r"[.(]", b.removeprefix("- name: "))[0] == base]
    lines = [line for block in blocks for line in block.removeprefix("- name: ").splitlines() if line.strip()]
    return [line for line in lines if not line.lstrip().startswith("#")][:_MOST_FORMULAS]


@cache
def _derivative_blocks() -> tuple[str, ...]:
    """Return the blocks in derivatives.yaml, one per overload; () if the file is missing."""
    spec = importlib.util.find_spec("torchgen")
    roots = list(spec.submodule_search_locations or []) if spec else []
    for root in map(Path, roots):
        path = root / "packaged" / "autograd" / "derivatives.yaml"
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return tuple(re.split(r"\n(?=- name: )", text)[1:])
    return ()
