"""Compact fingerprints of call results and mutated arguments: scalars by value, tensors by a hash or by moments.

Used by the recorder to store results, and by replay to compare them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from blake3 import blake3
from torch._ops import OpOverload

from traces.live import extent_of, unsupported_reason
from traces.overloads import moves_data, written
from traces.span import Span
from traces.values import DTYPE_NAMES, Json, pack

CHUNK = 1 << 22  # elements whose moments are computed at once, in float64
# Relative tolerances for moments from two devices, as a fraction of mean |x|. For integers and float64 only the sums
# differ, because of their order.
TOLERANCES = {"float32": 1e-3, "complex64": 1e-3, "float16": 4e-3, "bfloat16": 2e-2}
SMALLEST = 1e-9  # absolute tolerance, for sums that cancel
Measure: TypeAlias = Callable[[torch.Tensor], Any]
_ELSEWISE = {"float8": 0.15, "": 1e-6}  # tolerances for other dtypes, by the beginning of the dtype's name


def fingerprint(
    values: Mapping[str, Any], contents: bool = True, portable: bool = False, measure: Measure | None = None
) -> dict[str, Json]:
    """Compute fingerprints for named values.

    A tensor becomes {"shape", "stride", "dtype"} with "hash", the blake3 of its elements in row-major order. If it is
    not in host memory, it has "moments" instead: mean, mean |x| and max |x|.

    Args:
        values: Values by name.
        contents: False omits hashes and moments, as for views.
        portable: True adds moments to tensors in host memory as well.
        measure: Returns an object to store as a tensor's moments, or None to have them computed here.

    Returns:
        dict: Fingerprints by name.
    """
    measured = measure or (lambda t: None)
    by_id: dict[int, Json] = {}

    def walk(value: Any) -> Json:
        if isinstance(value, torch.Tensor):
            if id(value) not in by_id:
                by_id[id(value)] = _tensor(value, contents, portable, measured)
            return by_id[id(value)]
        if isinstance(value, list | tuple):
            return [walk(v) for v in value]
        return pack({"value": value}).tree["value"]

    with torch.no_grad():
        return {name: walk(value) for name, value in values.items()}


def results(
    op: OpOverload,
    arguments: Mapping[str, Any],
    result: Any,
    skip: frozenset[str] = frozenset(),
    portable: bool = False,
    measure: Measure | None = None,
) -> dict[str, Json]:
    """Compute fingerprints for a call's result ("return") and of each argument that the call mutated.

    Args:
        op: The overload.
        arguments: Arguments by schema name, after the call.
        result: The returned value.
        skip: Names for which only the structure is kept.
        portable: As for `fingerprint`.
        measure: As for `fingerprint`.

    Returns:
        dict: Fingerprints by name.
    """
    values = {"return": result, **{n: arguments[n] for n in sorted(written(op)) if arguments.get(n) is not None}}
    whole = fingerprint({n: v for n, v in values.items() if n not in skip}, moves_data(op), portable, measure)
    if len(whole) == len(values):
        return whole
    described = fingerprint({n: v for n, v in values.items() if n in skip}, contents=False)
    return {n: structure(described[n]) if n in skip else whole[n] for n in values}


def structure(entry: Json) -> Json:
    """Reduce one fingerprint to its structure: no hash, no moments, and only the type of a scalar."""
    if isinstance(entry, list):
        return [structure(f) for f in entry]
    if entry is None or (isinstance(entry, dict) and entry.keys() & {"unsupported", "scalar"}):
        return entry
    if isinstance(entry, dict) and "shape" in entry:
        parts = {k: structure(v) if k in ("indices", "values") else v for k, v in entry.items()}
        return {k: v for k, v in parts.items() if k not in ("hash", "moments")}
    return {"scalar": next(iter(entry)) if isinstance(entry, dict) else type(entry).__name__}


def _tensor(t: torch.Tensor, contents: bool, portable: bool, measure: Measure) -> Json:
    reason = unsupported_reason(t)
    if reason is not None:
        return {"unsupported": reason}
    if t.is_sparse:
        parts = {
            name: _tensor(p, contents, portable, measure)
            for name, p in (("indices", t._indices()), ("values", t._values()))
        }
        return {"shape": list(t.shape), "coalesced": t.is_coalesced(), **parts}
    entry: dict[str, Json] = {"shape": list(t.shape), "stride": list(t.stride()), "dtype": DTYPE_NAMES[t.dtype]}
    if contents and t.is_cpu:
        entry["hash"] = _hash(t)
    if contents and (portable or not t.is_cpu):
        entry["moments"] = measure(t) or [m.hex() for m in moments(t)]
    return entry


def _hash(t: torch.Tensor) -> str:
    dense = t.detach().resolve_conj().resolve_neg().contiguous()
    extent = extent_of(dense)
    return str(blake3(Span(extent.storage, extent.lo, extent.hi - extent.lo, dense.device).host()).hexdigest())


def moments(t: torch.Tensor) -> list[float]:
    """Compute mean, mean |x| and max |x| of the elements in float64; zeros for an empty tensor.

    For a complex tensor these are the moments of its real and imaginary parts. The computation needs 32 MiB on the
    tensor's device whatever its size, and synchronises once.
    """
    known = t.is_cpu or t.is_cuda or t.is_xpu
    flat = (t if known else t.cpu()).detach().resolve_conj().resolve_neg()  # a chip may lack the operators below
    flat = (torch.view_as_real(flat) if flat.is_complex() else flat).reshape(-1)
    if not flat.numel():
        return [0.0, 0.0, 0.0]
    sums = []
    for chunk in torch.split(flat, CHUNK):
        wide = chunk.to(torch.float64)
        sums.append(torch.stack([wide.sum(), wide.abs_().sum(), wide.max()]))
        del wide
    table = torch.stack(sums)
    total, absolute, greatest = torch.cat([table[:, :2].sum(0), table[:, 2].max().view(1)]).tolist()
    return [total / flat.numel(), absolute / flat.numel(), greatest]


def difference(recorded: Json, actual: Json, path: str = "") -> str | None:
    """Return the first difference between two fingerprints, or None if they are equal.

    The text looks like `return[0].hash: 1f.. is now 7a..`.
    """
    if isinstance(recorded, dict) and isinstance(actual, dict) and recorded.keys() == actual.keys():
        pairs = [(f"{path}.{key}".lstrip("."), recorded[key], actual[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(actual, list) and len(recorded) == len(actual):
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, actual, strict=True))]
    else:
        same = type(recorded) is type(actual) and recorded == actual
        return None if same else f"{path}: {str(recorded)[:60]} is now {str(actual)[:60]}"
    return next((text for where, a, b in pairs if (text := difference(a, b, where)) is not None), None)


def unlike(recorded: Json, actual: Json, path: str = "return") -> str | None:
    """Return the first difference beyond TOLERANCES between two devices, or None.

    `recorded` comes from another device, and `actual` is a portable fingerprint.
    Strides are not compared. A recorded hash must match exactly, because it belongs to a result in host memory.
    """
    if isinstance(recorded, list) and isinstance(actual, list) and len(recorded) == len(actual):
        pairs = enumerate(zip(recorded, actual, strict=True))
        return next((text for i, (a, b) in pairs if (text := unlike(a, b, f"{path}[{i}]")) is not None), None)
    if not (isinstance(recorded, dict) and isinstance(actual, dict) and "shape" in recorded and "shape" in actual):
        return _unlike_scalar(recorded, actual, path)
    if "indices" in recorded and "indices" in actual:
        parts = [unlike(recorded[k], actual[k], f"{path}.{k}") for k in ("indices", "values")]
        return next((text for text in parts if text is not None), None)
    for name in ("shape", "dtype", *(("hash",) if "hash" in recorded else ())):
        if recorded.get(name) != actual.get(name):
            return f"{path}.{name}: {str(recorded.get(name))[:60]} is {str(actual.get(name))[:60]} on the CPU"
    if "hash" in recorded:
        return None
    if "moments" in actual and not recorded.keys() & {"hash", "moments"}:
        return f"{path}: neither hash nor moments were recorded"
    return (
        _far_apart(recorded["moments"], actual["moments"], str(recorded["dtype"]), path)
        if "moments" in actual
        else None
    )


def _unlike_scalar(recorded: Json, actual: Json, path: str) -> str | None:
    if isinstance(recorded, dict) and isinstance(actual, dict) and recorded.keys() == actual.keys() == {"float"}:
        return _far_apart([recorded["float"]] * 3, [actual["float"]] * 3, "float32", path)
    return difference(recorded, actual, path)


def _far_apart(recorded: Json, actual: Json, dtype: str, path: str) -> str | None:
    try:
        (mean, absolute, greatest), (mean_2, absolute_2, greatest_2) = (
            map(float.fromhex, m) for m in (recorded, actual)
        )
    except (TypeError, ValueError):
        return f"{path}: {str(recorded)[:60]} are no moments"
    rtol = TOLERANCES.get(dtype) or next(r for start, r in _ELSEWISE.items() if dtype.startswith(start))
    pairs = {
        "mean": (mean, mean_2, absolute),
        "mean |x|": (absolute, absolute_2, absolute),
        "max |x|": (greatest, greatest_2, greatest),
    }
    for name, (a, b, unit) in pairs.items():
        near = math.isfinite(unit) and abs(a - b) <= rtol * abs(unit) + SMALLEST
        if not (near or a == b or (math.isnan(a) and math.isnan(b))):
            return f"{path}: {name} is {a:.6g} where it was recorded, {b:.6g} on the CPU ({dtype}, tolerance {rtol:g})"
    return None
