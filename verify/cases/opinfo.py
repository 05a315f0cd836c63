"""Which ATen overloads PyTorch's OpInfo also tests."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import torch

from traces.overloads import name_of
from verify.cases.samples import foreach_infos


def tested_overloads(cache: Path) -> frozenset[str]:
    """Overloads linked to an OpInfo by name: its forward, backward, in-place and foreach operators, every overload.

    The link is OpInfo's own (`aten_name`, `aten_backward_name`, `inplace_variant`). Read once per torch version and
    kept under `cache`, since importing the OpInfo database takes seconds.
    """
    path = cache / f"opinfo-{torch.__version__}.json"
    if path.is_file():
        return frozenset(json.loads(path.read_text()))
    overloads = sorted(_overloads(_operator_names()))
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump(overloads, file)
    os.replace(file.name, path)
    return frozenset(overloads)


def _operator_names() -> set[str]:
    from torch.testing._internal import common_methods_invocations as database

    names: set[str] = set()
    for info in database.op_db:
        names |= {info.aten_name, info.aten_backward_name or ""}
        if info.inplace_variant is not None:
            names.add(f"{info.aten_name}_")
    for info in foreach_infos():
        names |= {info.name, f"{info.name}_"}
    return names - {""}


def _overloads(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None:
            found |= {name_of(getattr(packet, o)) for o in packet.overloads()}
    return found
