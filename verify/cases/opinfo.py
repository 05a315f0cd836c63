"""The overloads and samples of PyTorch's OpInfo, cached because importing its database takes seconds.

A child process reads the database (verify/cases/sampler.py). It starts the import while the requesting command
imports torch itself. If this process has already imported the database, it reads the samples itself.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from traces import UserError
from traces.overloads import name_of
from traces.program import program_label
from traces.subgraphs import is_subgraph
from traces.values import Bytes, Packed
from verify.cases import of_forwards, of_out, of_schema, preconditions, samples
from verify.cases.case import Case, case_of_packed
from verify.cases.oracle import Trusted
from verify.cases.samples import foreach_infos, opinfo_cases
from verify.sandbox.children import ChildDied
from verify.sandbox.nursery import SAMPLED
from verify.signing import is_signed, sign

_READER = Trusted(SAMPLED, memory_bytes=8 << 30, seconds=1800.0)  # reads all samples for some operators
_LOCK = threading.Lock()
_DATABASE = "torch.testing._internal.common_methods_invocations"


def tested_overloads(cache: Path) -> frozenset[str]:
    """Return the overloads linked to an OpInfo by name: its forward, backward, in-place and foreach operators.

    The link is OpInfo's own (`aten_name`, `aten_backward_name`, `inplace_variant`), and covers every overload
    under those names. The result is computed once per torch version and cached under `cache`.
    """
    return frozenset(_kept(cache / f"opinfo-{torch.__version__}.json", None))


def kept_cases(cache: Path, overloads: list[str], dtypes: tuple[str, ...], every: bool = True) -> list[Case]:
    """Return `opinfo_cases` for these arguments, cached under `cache`.

    The cache key includes the torch version and the source code that turns samples into cases.
    """
    overloads = [overload for overload in overloads if not is_subgraph(overload)]
    if not overloads:
        return []
    key = [json.dumps([torch.__version__, overloads, dtypes, every]).encode()]
    key += [
        Path(str(module.__file__)).read_bytes() for module in (samples, of_schema, of_forwards, of_out, preconditions)
    ]
    path = cache / "samples" / f"{hashlib.sha256(b''.join(key)).hexdigest()[:32]}.json"
    samples_of = {"overloads": overloads, "dtypes": dtypes, "every": every}
    return [_case(**kept) for kept in _kept(path, samples_of)]


def _kept(path: Path, samples_of: dict[str, Any] | None) -> list[Any]:
    """Return the cached samples or overload names; create the file unless this user's commands already made it."""
    content = _signed(path)
    if content is None:
        if _DATABASE in sys.modules:
            keep(path, samples_of)
        else:
            with _LOCK:
                _read(path, samples_of)
        content = path.read_text()
        _replace(_signature_of(path), sign(path.name, content))
    entries: list[Any] = json.loads(content)
    return entries


def _signed(path: Path) -> str | None:
    """Return a file's text, or None if it does not exist or lacks this user's signature."""
    try:
        content, signature = path.read_text(), _signature_of(path).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    if is_signed(signature, path.name, content):
        return content
    _warn_of(path.parent)
    return None


@functools.cache
def _warn_of(directory: Path) -> None:
    """Warn once per directory that its samples are not trusted."""
    sys.stderr.write(
        f"{program_label()}: {directory} holds files that were changed or that another user made; these are made anew\n"
    )


def _signature_of(path: Path) -> Path:
    return path.with_suffix(".signature")


def _read(path: Path, samples_of: dict[str, Any] | None) -> None:
    """Have the child write the file.

    PyTorch runs much code for this and may crash the child, so a second child retries once.
    """
    for last in (False, True):
        try:
            _READER.ask(Packed({}), {"path": str(path.absolute()), "samples": samples_of})
            return
        except ChildDied as death:
            if last or death.timeout:
                names = ", ".join(samples_of["overloads"]) if samples_of else "all operators"
                raise UserError(
                    f"OpInfo's samples of {names}: the process in which PyTorch {torch.__version__} makes them ended "
                    f"({death.how}); try again, or with another PyTorch"
                ) from death


def keep(path: Path, samples_of: dict[str, Any] | None) -> None:
    """Write the file that `_kept` reads. `samples_of` holds the arguments for `opinfo_cases`."""
    if samples_of is None:
        _keep(path, sorted(_overloads(_operator_names())))
    else:
        _keep(path, [_as_json(case.overload, case.load()) for case in opinfo_cases(**samples_of)])


def _as_json(overload: str, packed: Packed) -> dict[str, object]:
    data = [None if d is None else base64.b64encode(d).decode() for d in packed.data]
    return {"overload": overload, "packed": packed.header(), "data": data}


def _case(overload: str, packed: dict[str, object], data: list[str | None]) -> Case:
    read: list[Bytes | None] = [None if d is None else base64.b64decode(d) for d in data]
    return case_of_packed(overload, Packed.from_header(packed, read, f"kept sample of {overload}"))


def _keep(path: Path, content: object) -> None:
    _replace(path, json.dumps(content))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


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
    overloads: set[str] = set()
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None:
            overloads |= {name_of(getattr(packet, o)) for o in packet.overloads()}
    return overloads
