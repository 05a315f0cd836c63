"""Recording of PyTorch's OpInfo samples as one trace.

Each sample runs on device `sim`, with the CPU as executor, forward and then backward. A sample is one step of the
recording, so a sample's calls are those with its step number. The manifest's `info.opinfo` describes the run:

- `groups`: one for each operator, variant and dtype, with the first sample's step, the number of samples, and the
  reason for each failed sample by index.
- `excluded`: operators that did not run, with the reason.
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
MANY = 900  # samples for one operator and dtype, from which it is excluded, as in the published system
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
    """Samples for one operator, variant and dtype.

    Attributes:
        operator: OpInfo name.
        variant: Variant name, often empty.
        dtype: Name without `torch.`.
        category: See `capture.categories`.
        step: Step of the first sample.
        samples: Number of samples.
        backward: Number of samples with a backward pass.
        failed: One-line reason for each failed sample by index; -1 if the samples could not be generated.
    """

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
    """The samples to record.

    Attributes:
        path: Directory of the trace.
        operators: OpInfo names; empty for all.
        dtypes: Names without `torch.`.
        everything: Include operators that the filters exclude.
        force: Replace an existing trace.
        lethal: Operators that ended the process in an earlier attempt.
    """

    path: str
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DTYPES
    everything: bool = False
    force: bool = False
    lethal: tuple[str, ...] = ()

    @property
    def filters(self) -> dict[str, Any]:
        """Return the filters as the manifest stores them."""
        return {"operators": list(self.operators), "dtypes": list(self.dtypes), "everything": self.everything}


def names() -> list[str]:
    """Return every OpInfo operator name once. Importing the database takes 2 s."""
    return sorted({info.name for info in _database()})


def _database() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return sorted(op_db, key=lambda info: (info.name, info.variant_test_name))


def record(request: SampleRequest, began: Callable[[str], None] = lambda operator: None) -> dict[str, Any]:
    """Record in this process.

    Args:
        request: The samples to record.
        began: Called with each operator name before the operator runs.

    Returns:
        dict: The manifest's `info.opinfo`.

    Raises:
        UserError: If an operator is unknown or the trace cannot be written.
    """
    import torch

    from capture import sim
    from capture.recorder import Recorder

    database = _database()
    known = {info.name for info in database}
    if unknown := sorted(set(request.operators) - known):
        within = sorted(name for name in known if unknown[0] in name)[:3]
        near = " or ".join(within or get_close_matches(unknown[0], known, 3))
        hint = f", did you mean {near}?" if near else "; write it like mm or nn.functional.gelu"
        raise UserError(f"OpInfo has no operator {unknown[0]!r}{hint}")
    sim.install()
    summary: dict[str, Any] = {"filters": request.filters, "groups": [], "excluded": {}}
    recorder = Recorder(request.path, force=request.force, info={"model": "opinfo", "opinfo": summary}, **_LIMITS)
    with warnings.catch_warnings(), sim.executing(sim.on_cpu), recorder:
        warnings.simplefilter("ignore")
        session = _Session(recorder, summary, request)
        for info in database:
            if request.operators and info.name not in request.operators:
                continue
            began(info.name)
            for dtype in request.dtypes:
                session.run(info, getattr(torch, dtype))
        summary["groups"] = [asdict(group) for group in session.groups]
    if recorder.failure is not None:
        raise UserError(f"{request.path}: cannot be written ({recorder.failure}); free space, or name another --out")
    return summary


class _Session:
    """Runs samples under a recorder, one step each."""

    def __init__(self, recorder: Any, info: dict[str, Any], request: SampleRequest) -> None:
        self.groups: list[Group] = []
        self._recorder = recorder
        self._excluded: dict[str, str] = info["excluded"]
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
            except Exception as error:  # noqa: BLE001 - any exception becomes the sample's reason
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
        """Run a sample. Return True if it had a backward pass."""
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
    """Run as the child process: read a request from standard input, write operator names to standard output."""
    output = sys.stdout
    sys.stdout = sys.stderr
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.load(sys.stdin).items()}
    request = SampleRequest(**fields)
    try:
        record(request, lambda operator: print(operator, file=output, flush=True))
    except UserError as error:
        print(f"error {error}", file=output, flush=True)
        raise SystemExit(2) from None


def record_apart(request: SampleRequest, began: Callable[[str], None] = lambda operator: None) -> None:
    """Record in child processes, because some samples end their process; an operator that does is excluded.

    The trace appears at its path when it is complete. Raise UserError as `record` does.
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
            raise UserError(f"recording OpInfo ended with status {status}; see its messages above")
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
