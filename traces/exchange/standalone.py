"""Run one recorded operator call with PyTorch and safetensors alone.

Usage:  python repro.py [--device cuda]

The script rebuilds the tensors from tensors.safetensors with the recorded strides, alignment and shared memory. It
compares everything that the call returns and mutates with the results of PyTorch's CPU kernel. On the CPU the bits
must agree; on another device the script prints the largest difference. The exit status is 1 if shapes, dtypes or
strides differ, or if bits differ on the CPU.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

CALL: dict[str, Any] = {}
ALIGNMENT = 128  # bytes


def main() -> int:
    parser = argparse.ArgumentParser(description=f"Run one recorded call of {CALL['overload']}.")
    parser.add_argument("--device", default="cpu", help="where to run it, such as cuda")
    device = torch.device(parser.parse_args().device)
    torch.set_num_threads(CALL["threads"])  # decides the order of sums
    data = load_file(Path(__file__).parent / "tensors.safetensors")
    groups = [rebuild(i, group, data, device) for i, group in enumerate(CALL["groups"])]
    tensors = [view(ref, *groups[ref["group"]]) for ref in CALL["tensors"]]
    arguments = {name: decode(value, tensors, device) for name, value in CALL["arguments"].items()}
    if "rng" in data and device.type == "cpu":
        torch.set_rng_state(data["rng"])
    with torch.no_grad():
        result = run(arguments)
    outputs = flatten("return", result) + [pair for name in CALL["mutated"] for pair in flatten(name, arguments[name])]
    return compare(outputs, data, device)


def run(arguments: dict[str, Any]) -> Any:
    namespace, _, name = CALL["overload"].partition("::")
    packet, _, overload = name.partition(".")
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    kwargs = {a.name: arguments[a.name] for a in op._schema.arguments if a.kwarg_only}
    return op(*[arguments[a.name] for a in op._schema.arguments if not a.kwarg_only], **kwargs)


def rebuild(i: int, group: dict[str, Any], data: dict[str, torch.Tensor], device: torch.device) -> tuple[Any, int]:
    """Return the bytes that tensors share, and their start; bytes that the call does not read are 0xFF (NaN, -1)."""
    buffer = torch.full((group["nbytes"] + ALIGNMENT,), 0xFF, dtype=torch.uint8, device=device)
    start = (group["align"] - buffer.data_ptr()) % ALIGNMENT
    if f"input.{i}" in data:
        buffer[start : start + group["nbytes"]] = data[f"input.{i}"].to(device)
    return buffer, start


def view(ref: dict[str, Any], buffer: torch.Tensor, start: int) -> torch.Tensor:
    dtype = getattr(torch, ref["dtype"])
    offset = (start + ref["offset"]) // dtype.itemsize
    t = torch.empty(0, dtype=dtype, device=buffer.device)
    t.set_(buffer.untyped_storage(), offset, tuple(ref["shape"]), tuple(ref["stride"]))
    t = t.conj() if ref.get("conj") else t
    return torch._neg_view(t) if ref.get("neg") else t


def decode(value: Any, tensors: list[torch.Tensor], device: torch.device) -> Any:
    if isinstance(value, list):
        return [decode(v, tensors, device) for v in value]
    if not isinstance(value, dict):
        return value
    tag, content = next(iter(value.items()))
    if tag == "tensor":
        return tensors[content]
    if tag == "tuple":
        return tuple(decode(v, tensors, device) for v in content)
    if tag == "float":
        return float.fromhex(content)
    if tag == "complex":
        return complex(*map(float.fromhex, content))
    if tag == "device":
        return device
    if tag == "sparse_coo":
        indices, values = (decode(content[name], tensors, device) for name in ("indices", "values"))
        built = torch.sparse_coo_tensor(indices, values, content["size"], check_invariants=True)
        return built._coalesced_(content["coalesced"])
    return getattr(torch, content)  # dtype, layout, memory format


def flatten(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return dense tensors and scalars by name; a sparse tensor becomes its indices and values."""
    if isinstance(value, torch.Tensor) and value.is_sparse:
        return [(f"{name}.indices", value._indices()), (f"{name}.values", value._values())]
    if isinstance(value, (list, tuple)):
        return [pair for i, v in enumerate(value) for pair in flatten(f"{name}[{i}]", v)]
    return [(name, value)]


def describe(value: Any) -> Any:
    """Return the properties to compare besides the contents; a scalar is compared as a whole."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    dtype = str(value.dtype).removeprefix("torch.")
    return {"shape": list(value.shape), "stride": list(value.stride()), "dtype": dtype}


def raw(t: torch.Tensor) -> torch.Tensor:
    """Return the elements in row-major order as bytes [N], on the CPU."""
    dense = t.detach().cpu().resolve_conj().resolve_neg().contiguous()
    first, nbytes = dense.storage_offset() * dense.element_size(), dense.numel() * dense.element_size()
    return torch.empty(0, dtype=torch.uint8).set_(dense.untyped_storage(), first, (nbytes,), (1,))


def compare(results: list[tuple[str, Any]], data: dict[str, torch.Tensor], device: torch.device) -> int:
    expected, failed = CALL["expected"], False
    if [name for name, _ in results] != list(expected):
        sys.stdout.write(f"returned {[name for name, _ in results]}, expected {list(expected)}\n")
        return 1
    for name, value in results:
        same, text = verdict(describe(value), expected[name], value, data.get(f"expected.{name}"), device)
        failed |= not same
        sys.stdout.write(f"{name}: {text}\n")
    return int(failed)


def verdict(now: Any, then: Any, value: Any, elements: Any, device: torch.device) -> tuple[bool, str]:
    """Return True if one result agrees, and a description of the comparison."""
    if now != then:
        return False, f"{now}, expected {then}"
    summary = f"{now['dtype']}{now['shape']}" if isinstance(now, dict) else now
    if elements is None:
        return True, f"{summary}, as expected"
    if torch.equal(raw(value), elements):
        return True, f"{summary}, bit-exact"
    return device.type != "cpu", f"{summary}, {difference(value, elements)}"


def difference(value: torch.Tensor, elements: torch.Tensor) -> str:
    then = elements.clone().view(value.dtype).reshape(value.shape)  # cloned for alignment
    wide = torch.complex128 if value.is_complex() else torch.float64
    pair = value.detach().cpu().to(wide), then.to(wide)
    nan = pair[0].isnan() != pair[1].isnan()
    if nan.any():
        return f"NaN at {int(nan.sum())} of {nan.numel()} elements where only one side has it"
    gap = torch.where(pair[0] == pair[1], 0.0, (pair[0] - pair[1]).abs()).nan_to_num(0.0)
    return f"max difference {gap.max().item():.3g}"


if __name__ == "__main__":
    sys.exit(main())
