"""What a call returned and mutated, in few bytes: scalars by value, tensors by the hash of their elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from blake3 import blake3
from torch._ops import OpOverload

from traces.overloads import moves_data, written
from traces.values import Json, pack, unsupported_reason


def fingerprint(values: Mapping[str, Any], contents: bool = True) -> dict[str, Json]:
    """Fingerprints of some named values. contents: False leaves out the hashes, as for views and uninitialised memory.

    A tensor becomes {"shape", "stride", "dtype", "hash"}; the hash is the blake3 of its elements in row-major order.
    """
    seen: dict[int, Json] = {}

    def walk(value: Any) -> Json:
        if isinstance(value, torch.Tensor):
            if id(value) not in seen:
                seen[id(value)] = _tensor(value, contents)
            return seen[id(value)]
        if isinstance(value, list | tuple):
            return [walk(v) for v in value]
        return pack({"value": value}).tree["value"]

    with torch.no_grad():
        return {name: walk(value) for name, value in values.items()}


def results(op: OpOverload, arguments: Mapping[str, Any], result: Any) -> dict[str, Json]:
    """Fingerprints of what a call returned ("return") and of each argument that it mutated."""
    mutated = {name: arguments[name] for name in sorted(written(op)) if arguments.get(name) is not None}
    return fingerprint({"return": result, **mutated}, contents=moves_data(op))


def _tensor(t: torch.Tensor, contents: bool) -> Json:
    reason = unsupported_reason(t)
    if reason is not None:
        return {"unsupported": reason}
    if t.is_sparse:
        parts = {"indices": _tensor(t._indices(), contents), "values": _tensor(t._values(), contents)}
        return {"shape": list(t.shape), "coalesced": t.is_coalesced(), **parts}
    found = {"shape": list(t.shape), "stride": list(t.stride()), "dtype": str(t.dtype).removeprefix("torch.")}
    return {**found, "hash": _hash(t)} if contents else found


def _hash(t: torch.Tensor) -> str:
    dense = t.detach().resolve_conj().resolve_neg().contiguous()
    data = pack({"t": dense}).data
    return str(blake3(data[0] if data and data[0] is not None else b"").hexdigest())


def difference(recorded: Json, found: Json, path: str = "") -> str | None:
    """Where two fingerprints differ first, such as `return[0].hash: 1f.. is now 7a..`; None if they are equal."""
    if isinstance(recorded, dict) and isinstance(found, dict) and recorded.keys() == found.keys():
        pairs = [(f"{path}.{key}".lstrip("."), recorded[key], found[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, found, strict=True))]
    else:
        same = type(recorded) is type(found) and recorded == found
        return None if same else f"{path}: {str(recorded)[:60]} is now {str(found)[:60]}"
    return next((text for where, a, b in pairs if (text := difference(a, b, where)) is not None), None)
