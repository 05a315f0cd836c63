"""Run cases on a GPU for a debugger: `python -m verify.debugging.cuda_replay DIRECTORY SANDBOX`.

DIRECTORY contains `cases.json` with the sources, and `cases.bin` with the buffers of the cases. Each argument has
its own allocation, exactly as large as its data in the case, so that every access outside an argument is outside
an allocation. `places.json` maps addresses to arguments. Each case's number is printed before it runs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import torch

from traces.values import Bytes, Packed, unpack
from verify.cases.packed import tensor_names
from verify.child.loading import described, load_wrappers
from verify.child.probe import KERNEL
from verify.contract.derive import Plan, call
from verify.contract.random_state import bound
from verify.platforms import Device
from verify.sandbox import confine

CASE = "case number "  # printed on its own line before each case


def replay(directory: Path, sandbox: str) -> None:
    """Run the cases without judging them."""
    header = json.loads((directory / "cases.json").read_text())
    device = Device.read(header["device"])
    names: dict[int, str] = {}
    with (directory / "cases.bin").open("rb") as raw:
        arguments_of_cases = [_arguments(case, raw, device.place, names) for case in header["cases"]]
    (directory / "places.json").write_text(json.dumps(names))
    load_wrappers({"kernel": KERNEL}, directory / "own")["kernel"](torch.arange(100.0, device=device.place))
    if sandbox == confine.FULL:
        confine.confine(confine.PROFILES["device"], directory, device=device)
    wrappers = load_wrappers(header["sources"], directory, target=device.target)
    for number, (case, arguments) in enumerate(zip(header["cases"], arguments_of_cases, strict=True)):
        sys.stdout.write(f"{CASE}{number}\n")
        sys.stdout.flush()
        wrapper = bound(wrappers["kernel"], case["philox"])
        call(Plan(**header["plan"]), arguments, wrapper, header["takes_out"], wrappers["copy"])
        torch.accelerator.synchronize()


def _arguments(case: Any, raw: BinaryIO, device: str, names: dict[int, str]) -> dict[str, Any]:
    """Build a case's arguments on the device, and add their addresses to `names`."""
    spans: list[Bytes | None] = [None if size is None else raw.read(size) for size in case["sizes"]]
    packed = Packed.from_header(case["packed"], spans, "case")
    groups = [_on_device(group.nbytes, data, device) for group, data in zip(packed.groups, packed.data, strict=True)]
    tensors = zip(tensor_names(packed.tree), packed.tensors, strict=True)
    names.update({groups[ref.group].data_ptr(): name for name, ref in tensors})
    placed = iter([_tensor(ref, groups[ref.group]) for ref in packed.tensors])
    return {name: _placed(value, placed, device) for name, value in unpack(packed).items()}


def _on_device(nbytes: int, data: Any, device: str) -> torch.Tensor:
    buffer = torch.empty(nbytes, dtype=torch.uint8, device=device)
    if data is not None and nbytes:
        buffer.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    return buffer


def _tensor(ref: Any, group: torch.Tensor) -> torch.Tensor:
    dtype = getattr(torch, ref.dtype)
    tensor = torch.empty(0, dtype=dtype, device=group.device)
    tensor.set_(group.untyped_storage(), ref.offset // dtype.itemsize, ref.shape, ref.stride)
    tensor = torch.conj(tensor) if ref.conj else tensor
    return torch._neg_view(tensor) if ref.neg else tensor


def _placed(value: Any, tensors: Any, device: str) -> Any:
    """Return `value` with every tensor replaced by the next one in `tensors`, in packing order."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, list | tuple):
        return type(value)(_placed(v, tensors, device) for v in value)
    return value


if __name__ == "__main__":
    case_directory = Path(sys.argv[1])
    (case_directory / "own").mkdir()
    try:
        replay(case_directory, sys.argv[2])
    except Exception as error:  # noqa: BLE001 - this process exists to report the candidate's error
        sys.stdout.write(f"{described(error, str(case_directory))}\n")
        sys.stdout.flush()
        os._exit(1)  # immediately: after a CUDA error, not even memory can be freed
    os._exit(0)
