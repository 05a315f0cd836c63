"""Cases on a GPU, for a debugger that watches them: `python -m verify.debugging.cuda_replay DIRECTORY SANDBOX`.

DIRECTORY holds `cases.json` with the sources and the cases' buffers in `cases.bin`. Every argument's memory is an
allocation of its own, exactly as large as what the case holds of it, so that an access outside is one outside an
allocation; `places.json` tells the addresses. Before each case its number is printed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import torch

from traces.values import Bytes, Packed, unpack
from verify.cases.case import tensor_names
from verify.child.loading import described, load_wrappers
from verify.child.probe import KERNEL
from verify.contract.derive import Plan, call
from verify.contract.random_state import bound
from verify.platforms import Device
from verify.sandbox import confine

CASE = "case number "  # a line of its own before each case


def replay(directory: Path, sandbox: str) -> None:
    """Run the cases. Nothing is judged."""
    header = json.loads((directory / "cases.json").read_text())
    device = Device.read(header["device"])
    names: dict[int, str] = {}
    with (directory / "cases.bin").open("rb") as raw:
        given = [_arguments(case, raw, device.place, names) for case in header["cases"]]
    (directory / "places.json").write_text(json.dumps(names))
    load_wrappers({"kernel": KERNEL}, directory / "own")["kernel"](torch.arange(100.0, device=device.place))
    if sandbox == confine.FULL:
        confine.confine(confine.PROFILES["device"], directory, device=device)
    wrappers = load_wrappers(header["sources"], directory, target=device.target)
    for number, (case, arguments) in enumerate(zip(header["cases"], given, strict=True)):
        sys.stdout.write(f"{CASE}{number}\n")
        sys.stdout.flush()
        wrapper = bound(wrappers["kernel"], case["philox"])
        call(Plan(**header["plan"]), arguments, wrapper, header["takes_out"], wrappers["copy"])
        torch.accelerator.synchronize()


def _arguments(case: Any, raw: BinaryIO, place: str, names: dict[int, str]) -> dict[str, Any]:
    """The arguments of a case on the device, whose addresses are added to `names`."""
    spans: list[Bytes | None] = [None if size is None else raw.read(size) for size in case["sizes"]]
    packed = Packed.from_header(case["packed"], spans, "case")
    groups = [_on_device(group.nbytes, data, place) for group, data in zip(packed.groups, packed.data, strict=True)]
    tensors = zip(tensor_names(packed.tree), packed.tensors, strict=True)
    names.update({groups[ref.group].data_ptr(): name for name, ref in tensors})
    placed = iter([_tensor(ref, groups[ref.group]) for ref in packed.tensors])
    return {name: _placed(value, placed, place) for name, value in unpack(packed).items()}


def _on_device(nbytes: int, data: Any, place: str) -> torch.Tensor:
    held = torch.empty(nbytes, dtype=torch.uint8, device=place)
    if data is not None and nbytes:
        held.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    return held


def _tensor(ref: Any, group: torch.Tensor) -> torch.Tensor:
    dtype = getattr(torch, ref.dtype)
    made = torch.empty(0, dtype=dtype, device=group.device)
    made.set_(group.untyped_storage(), ref.offset // dtype.itemsize, ref.shape, ref.stride)
    made = torch.conj(made) if ref.conj else made
    return torch._neg_view(made) if ref.neg else made


def _placed(value: Any, tensors: Any, place: str) -> Any:
    """The same value with every tensor on the device, in the order in which they are packed."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, torch.device):
        return torch.device(place)
    if isinstance(value, list | tuple):
        return type(value)(_placed(v, tensors, place) for v in value)
    return value


if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / "own").mkdir()
    try:
        replay(place, sys.argv[2])
    except Exception as error:  # noqa: BLE001 - the candidate's error is what this process is asked for
        sys.stdout.write(f"{described(error, str(place))}\n")
        sys.stdout.flush()
        os._exit(1)  # at once: after an error of CUDA memory cannot even be freed
    os._exit(0)
