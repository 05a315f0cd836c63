"""What PyTorch itself says about an operator: the public function's docstring, the docstrings it leans on, and for a
backward operator the derivative formulas that torch ships.

An overload such as `aten::_log_softmax_backward_data` has no docstring; it is led back to the public function that
has one by taking off what names of internals add.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

BUDGET = 9_000  # characters of all docstrings together
SHARE = 5_000  # of one docstring

_NAMESPACES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "torch.Tensor")
_MOST_FORMULAS = 12  # lines
_PREFIXES = {"linalg_": "torch.linalg", "special_": "torch.special", "fft_": "torch.fft"}
# what the names of internal overloads add to the public name
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
# where taking off does not lead to the public name
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
    "index": "torch.Tensor.index_put_",  # torch.Tensor.index is of functorch, and something else
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
    """Docstrings and formulas for a prompt, as text of at most about BUDGET characters; '' if torch says nothing. Of a
    subgraph its steps."""
    if not overload.startswith("aten::") and (told := _steps(overload)):
        return told
    base = overload.partition("::")[2].partition(".")[0]
    found = public_function(base)
    formulas = _formulas(base, found is not None)
    parts = [formulas] if formulas else []
    if found is not None:
        kind = "documentation" if found[1] in (base, base.rstrip("_")) else "documentation of the public function"
        if "backward" in base:
            kind = "documentation of the forward function"
        docstrings = _with_references(found[0], BUDGET - len(formulas))
        kinds = [kind] + ["it refers to"] * len(docstrings)
        parts += [f"## {kind}: {name}\n\n{text}" for kind, (name, text) in zip(kinds, docstrings, strict=False)]
    return "\n\n".join(parts)


def _steps(overload: str) -> str:
    """Of a subgraph its steps; '' of any other operator."""
    from generate.subgraphs.describing import steps_text
    from traces.subgraphs import subgraph_of

    subgraph = subgraph_of(overload)
    return "" if subgraph is None else steps_text(subgraph)


def _formulas(base: str, documented: bool) -> str:
    """The formulas that call a backward operator; of an operator that has no docstring, those of its own gradient."""
    calling = derivative_formulas(base)
    head = "derivative formulas that call it"
    if not calling and not documented:
        calling, head = own_formulas(base), "its derivative formulas"
    lines = [f"## {head} (C++ expressions of PyTorch; grad is the gradient of the output)", ""]
    return "\n".join(lines + [f"    {line}" for line in calling]) if calling else ""


def public_function(base: str) -> tuple[str, str] | None:
    """(`torch.nn.functional.gelu`, `gelu`) for `gelu_backward`: where the docstring is, and under which short name."""
    seen = set()
    names = deque([base])
    while names:
        name = names.popleft()
        if name in seen or not name:
            continue
        seen.add(name)
        for candidate in _candidates(name):
            if docstring(candidate):
                return candidate, name
        names.extend(re.sub(pattern, new, name) for pattern, new in _ADDED)
    return None


def _candidates(name: str) -> list[str]:
    prefixed = [f"{space}.{name.removeprefix(p)}" for p, space in _PREFIXES.items() if name.startswith(p)]
    renamed = [_RENAMED[name]] if name in _RENAMED else []
    in_place = f"torch.Tensor.{name}_"  # of a functional overload whose public form is a method in place
    return [*renamed, *prefixed, *(f"{space}.{name}" for space in _NAMESPACES), in_place]


@cache
def docstring(dotted: str) -> str:
    """The cleaned docstring of a public torch name, cut to SHARE characters; '' if there is none."""
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
    text = re.sub(r"^\.\. (image|plot|figure)::.*\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[:limit].rpartition("\n")[0] + "\n[...]"


def _references(text: str) -> list[str]:
    found = _REFERENCE.findall(text)
    return [name if name.startswith("torch.") else f"torch.{name}" for name in found]


def _with_references(root: str, left: int) -> list[tuple[str, str]]:
    """The docstring of `root` and of what it refers to, nearest first, each once, `left` characters at most.

    References are a graph with cycles; each name is visited once. One that no longer fits is left out, with what it
    alone refers to.
    """
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    waiting = deque([root])
    while waiting:
        name = waiting.popleft()
        text = docstring(name)
        if name in seen or not text or text in (t for _, t in found) or len(text) > left:
            continue
        seen.add(name)
        found.append((name, text))
        left -= len(text)
        waiting.extend(r for r in _references(text) if not _NO_OPERATOR.match(r))
    return found


def derivative_formulas(base: str) -> list[str]:
    """The lines of derivatives.yaml in which a forward operator's gradient calls `base`; [] for forward operators.

    Source: torchgen/packaged/autograd/derivatives.yaml, which is part of the torch distribution.
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
    """The lines of derivatives.yaml that give the gradients of `base` itself, of every overload; [] if it has none."""
    mine = [b for b in _derivative_blocks() if re.split(r"[.(]", b.removeprefix("- name: "))[0] == base]
    lines = [line for block in mine for line in block.removeprefix("- name: ").splitlines() if line.strip()]
    return [line for line in lines if not line.lstrip().startswith("#")][:_MOST_FORMULAS]


@cache
def _derivative_blocks() -> tuple[str, ...]:
    spec = importlib.util.find_spec("torchgen")
    roots = list(spec.submodule_search_locations or []) if spec else []
    for root in map(Path, roots):
        path = root / "packaged" / "autograd" / "derivatives.yaml"
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return tuple(re.split(r"\n(?=- name: )", text)[1:])
    return ()
