"""PyTorch's OpInfo samples as one trace: each runs on device `sim`, the CPU executing, forward and then backward.

A sample is a step of the recording, so the calls of a sample are those with its step. The manifest's `info.opinfo`
holds what was run: `groups`, of one operator, variant and dtype each, with the step of the first sample, how many there
are, and the reasons of those that failed by their index; and `excluded`, operators that were not run, with the reason.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from capture.categories import category
from traces.errors import UserError
from traces.packaging import qualified

DTYPES = ("bfloat16", "float16", "float32", "int32", "int64")
MANY = 900  # samples of one operator and dtype, from which on it is left out, as in the published system
_LIMITS: dict[str, Any] = {
    "steps": None,
    "per_signature": 1 << 30,
    "max_bytes": 1 << 40,
    "max_blob": 1 << 30,
    "queue_bytes": 1 << 30,
    "max_signatures": 1 << 20,
}


@dataclass
class Group:
    """Samples of one operator, variant and dtype. failed: reasons in a line, by the index of the sample."""

    operator: str
    variant: str
    dtype: str
    category: str
    step: int = 0
    samples: int = 0
    backward: int = 0
    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleRequest:
    """What to record. operators: names of OpInfo; empty for all. everything: also what the filters leave out.

    lethal: operators that ended the process when they were run before.
    """

    path: str
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DTYPES
    everything: bool = False
    force: bool = False
    lethal: tuple[str, ...] = ()

    @property
    def filters(self) -> dict[str, Any]:
        """What was asked for, as the manifest keeps it."""
        return {"operators": list(self.operators), "dtypes": list(self.dtypes), "everything": self.everything}


def names() -> list[str]:
    """Every operator of OpInfo, once. Imports the database, which takes 2 s."""
    return sorted({info.name for info in _database()})


def _database() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return sorted(op_db, key=lambda info: (info.name, info.variant_test_name))


def record(request: SampleRequest, began: Callable[[str], None] = lambda operator: None) -> dict[str, Any]:
    """Record in this process. Returns `info.opinfo` of the manifest. began: told of each operator before it runs.

    Raises UserError for an unknown operator or dtype, or if the trace cannot be written.
    """
    import torch

    from capture import sim
    from capture.recorder import Recorder

    database = _database()
    known = {info.name for info in database}
    if unknown := sorted(set(request.operators) - known):
        within = sorted(name for name in known if unknown[0] in name)[:3]
        near = within or get_close_matches(unknown[0], known, 3) or sorted(known)[:3]
        raise UserError(f"OpInfo has no operator {unknown[0]!r}; did you mean {', '.join(near)}?")
    sim.install()
    told: dict[str, Any] = {"filters": request.filters, "groups": [], "excluded": {}}
    recorder = Recorder(request.path, force=request.force, info={"model": "opinfo", "opinfo": told}, **_LIMITS)
    with warnings.catch_warnings(), sim.executing(sim.on_cpu), recorder:
        warnings.simplefilter("ignore")
        session = _Session(recorder, told, request)
        for info in database:
            if request.operators and info.name not in request.operators:
                continue
            began(info.name)
            for dtype in request.dtypes:
                session.run(info, getattr(torch, dtype))
        told["groups"] = [asdict(group) for group in session.groups]
    if recorder.failure is not None:
        raise UserError(f"{request.path}: cannot be written ({recorder.failure}); free space, or name another --out")
    return told


class _Session:
    """Runs samples under a recorder, a step each."""

    def __init__(self, recorder: Any, told: dict[str, Any], request: SampleRequest) -> None:
        self.groups: list[Group] = []
        self._recorder = recorder
        self._excluded: dict[str, str] = told["excluded"]
        self._request = request
        self._step = 0

    def run(self, info: Any, dtype: Any) -> None:
        name = f"{info.name}.{info.variant_test_name}".rstrip(".")
        if info.name in self._request.lethal:
            self._excluded[name] = "it ended the process"
            return
        if dtype not in info.supported_dtypes("cpu"):
            return
        trains = info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
        group = Group(info.name, info.variant_test_name, str(dtype).removeprefix("torch."), category(info), self._step)
        with self._recorder.pause():
            samples = self._samples(info, dtype, trains, group)
        if samples is not None and len(samples) >= MANY and not self._request.everything:
            self._excluded[name] = f"{MANY} samples or more"
            return
        for index, sample in enumerate(samples or ()):
            try:
                group.backward += self._forward_and_backward(info, sample, trains)
            except Exception as error:  # noqa: BLE001 - whatever a sample raises is its reason
                group.failed[index] = _line(error)
            self._recorder.step()
            self._step += 1
        group.samples = len(samples or ())
        if group.samples or group.failed:
            self.groups.append(group)

    def _samples(self, info: Any, dtype: Any, trains: bool, group: Group) -> list[Any] | None:
        import torch

        seed = zlib.crc32(f"{info.name} {info.variant_test_name} {dtype}".encode())
        torch.manual_seed(seed)
        random.seed(seed)  # some generators choose their samples with it
        try:
            return list(info.sample_inputs("sim", dtype, requires_grad=trains))
        except Exception as error:  # noqa: BLE001 - as above
            group.failed[-1] = f"no samples: {_line(error)}"
            return None

    def _forward_and_backward(self, info: Any, sample: Any, trains: bool) -> bool:
        """Whether there was a backward pass."""
        import torch
        from torch.utils._pytree import tree_leaves

        from capture import sim

        result = info.op(sample.input, *sample.args, **sample.kwargs)
        if not trains:
            return False
        leaves = tree_leaves(sample.output_process_fn_grad(result))
        outputs = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
        if not outputs:
            return False
        with self._recorder.pause():
            gradients = [torch.randn(t.shape, dtype=t.dtype).to(t.device) for t in outputs]
        with sim.own_errors():
            torch.autograd.backward(outputs, gradients)
        return True


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200]


def main() -> None:
    """Be the process in which samples run: a request on standard input, names of operators on standard output."""
    told = sys.stdout
    sys.stdout = sys.stderr
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.load(sys.stdin).items()}
    request = SampleRequest(**given)
    try:
        record(request, lambda operator: print(operator, file=told, flush=True))
    except UserError as error:
        print(f"error {error}", file=told, flush=True)
        raise SystemExit(2) from None


def record_apart(request: SampleRequest, began: Callable[[str], None] = lambda operator: None) -> None:
    """Record in processes of their own, since some samples may end theirs: an operator that did is left out.

    The trace appears at its path when it is complete. Raises UserError as `record` does.
    """
    from capture.session import check_path, fresh_directory

    path = Path(request.path)
    check_path(path, request.force)
    with fresh_directory(path) as parent:
        _record_until_done(replace(request, path=str(parent / path.name)), began)


def _record_until_done(request: SampleRequest, began: Callable[[str], None]) -> None:
    lethal: tuple[str, ...] = ()
    while True:
        last, status = "", 0
        with _child(replace(request, lethal=lethal, force=bool(lethal))) as process:
            for line in process.stdout or ():
                last = line.strip()
                began(last)
            status = process.wait()
        if status == 0:
            return
        if last.startswith("error "):
            raise UserError(last.removeprefix("error "))
        if not last or last in lethal:
            raise UserError(f"recording OpInfo ended with status {status}; see what it wrote above")
        lethal = (*lethal, last)


def _child(request: SampleRequest) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", qualified("capture.opinfo")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(request)))
    process.stdin.close()
    return process


if __name__ == "__main__":
    main()
