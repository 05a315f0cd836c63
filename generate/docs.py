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
    (r"_(for_cpu|cpu|cuda|overrideable|impl|fused|copy|functional)$", ""),
    (r"^(scaled_dot_product)_(flash|efficient|fused|cudnn|math)_attention", r"\1_attention"),
    (r"^fused_(adamw?|sgd|adagrad)$", r"\1"),
    (r"_+$", ""),
)
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
}
_NO_OPERATOR = re.compile(r"torch\.(cuda|backends|set_|get_|from|random|initial)")
_REFERENCE = re.compile(r":(?:func|class|meth|attr):`~?(torch\.[\w.]+?)(?:\(\))?`")


def documentation(overload: str) -> str:
    """Docstrings and formulas for a prompt, as text; '' if torch says nothing. Never over about BUDGET characters."""
    base = overload.partition("::")[2].partition(".")[0]
    found = public_function(base)
    parts = []
    if found is not None:
        kind = "documentation" if found[1] in (base, base.rstrip("_")) else "documentation of the public function"
        if "backward" in base:
            kind = "documentation of the forward function"
        parts += [f"## {kind}: {name}\n\n{text}" for name, text in _with_references(found[0])]
        parts[1:] = [re.sub(r"^## .*?: ", "## it refers to: ", part) for part in parts[1:]]
    formulas = derivative_formulas(base)
    if formulas:
        head = "## derivative formulas that call it (C++ expressions of PyTorch; grad is the gradient of the output)"
        parts.insert(0, head + "\n\n" + "\n".join(f"    {line}" for line in formulas))
    return "\n\n".join(parts)


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
    return [*renamed, *prefixed, *(f"{space}.{name}" for space in _NAMESPACES)]


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


def _with_references(root: str) -> list[tuple[str, str]]:
    """The docstring of `root` and of what it refers to, nearest first, each once, within the budget."""
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    waiting = deque([root])
    left = BUDGET
    while waiting:
        name = waiting.popleft()
        text = docstring(name)
        if name in seen or not text or text in (t for _, t in found) or len(text) > left:
            continue
        seen.add(name)
        found.append((name, text))
        left -= len(text)
        waiting.extend(r for r in _REFERENCE.findall(text) if not _NO_OPERATOR.match(r))
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
        if calling and "backward" not in name.partition("(")[0] and len(lines) < 12:
            lines += [name.removeprefix("- name: "), *(f"  {f}" for f in calling)]
    return lines


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
