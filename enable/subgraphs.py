"""Read and write the fusions of a workspace: subgraphs found in traces, and their recorded calls.

.enable/fusions/NAME.json describes the subgraph. For each use it names the stored calls in a trace that hold the
inputs, so the file is small and inputs are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from traces import TraceError, UserError
from traces.format import parse_json, write_durably
from traces.program import program_name

if TYPE_CHECKING:
    from traces.store import Trace
    from traces.subgraphs import Subgraph
    from traces.values import Packed
    from verify.cases.case import Case

FORMAT = 1
MAX_BYTES = 1 << 26  # per file


@dataclass(frozen=True)
class RecordedUse:
    """One occurrence of a subgraph in a trace.

    Attributes:
        trace: Trace name.
        phase: Phase of the first step.
        module: Module of the first step.
        calls: Positions of its steps in the trace's dataflow.
        inputs: For each input, a stored call and the tensor's number among its arguments.
        shapes: Shapes of the inputs.
        outputs: Numbers of the values that are read outside.
        nbytes: Bytes of memory traffic that one kernel for all steps saves.
        launches: Launches that it saves.
    """

    trace: str
    phase: str
    module: str
    calls: tuple[int, ...]
    inputs: tuple[tuple[int, int], ...]
    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    nbytes: int
    launches: int


@dataclass(frozen=True)
class Fusion:
    """A subgraph that is worth its own kernel, and its uses."""

    subgraph: Subgraph
    kind: str
    uses: tuple[RecordedUse, ...]

    @property
    def overload(self) -> str:
        """Return the subgraph's overload name."""
        return self.subgraph.overload

    @property
    def nbytes(self) -> int:
        """Return the bytes saved in all uses together."""
        return sum(use.nbytes for use in self.uses)

    @property
    def launches(self) -> int:
        """Return the launches saved in all uses together."""
        return sum(use.launches for use in self.uses)

    @property
    def shapes(self) -> list[tuple[tuple[int, ...], ...]]:
        """Return the distinct combinations of input shapes, in the order of first use."""
        return list(dict.fromkeys(use.shapes for use in self.uses))

    def save(self, directory: Path) -> Path:
        """Write the fusion to a directory and return the file's path."""
        path = directory / file_name(self.overload)
        fields = {
            "format": FORMAT,
            "overload": self.overload,
            "kind": self.kind,
            "subgraph": self.subgraph.as_json(),
            "uses": [asdict(use) for use in self.uses],
        }
        directory.mkdir(parents=True, exist_ok=True)
        write_durably(path, [json.dumps(fields, indent=1).encode(), b"\n"])
        return path

    @classmethod
    def load(cls, path: Path) -> Fusion:
        """Read a file that `save` wrote. Raise TraceError with the file's name if it is damaged."""
        from generate.validation import validated
        from traces.subgraphs import Subgraph

        try:
            if path.stat().st_size > MAX_BYTES:
                raise TraceError(f"{path}: over the limit of {MAX_BYTES} bytes")
            fields = parse_json(path.read_bytes(), str(path))
            if fields["format"] != FORMAT:
                raise TraceError(f"{path} is format {str(fields['format'])[:20]}, this toolkit reads {FORMAT}")
            subgraph = Subgraph.of_json(fields["subgraph"], str(path))
            uses = tuple(validated(RecordedUse, use) for use in fields["uses"])
            fusion = cls(subgraph, str(fields["kind"]), uses)
        except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise TraceError(
                f"{path}: not a fusion ({error!r}); remove it and find it anew: {program_name()} fuse MODEL"
            ) from error
        if fusion.overload != fields["overload"] or path.name != file_name(fusion.overload):
            raise TraceError(
                f"{path}: holds {fusion.overload}, its name says another; find it anew: {program_name()} fuse MODEL"
            )
        if any(len(use.inputs) != len(subgraph.inputs) for use in uses):
            raise TraceError(
                f"{path}: a use has not {len(subgraph.inputs)} inputs; find it anew: {program_name()} fuse MODEL"
            )
        return fusion

    def cases(self, open_trace: Callable[[str], Trace], only: str | None = None) -> Iterator[Case]:
        """Yield the recorded calls whose inputs are available, without duplicates.

        Args:
            open_trace: Opens a trace by name.
            only: Yield only calls in this trace; None for all.

        Raises:
            UserError: A trace does not exist.
            TraceError: A trace is damaged or was recorded anew.
        """
        case_ids = set[str]()
        traces: dict[str, Trace] = {}
        for use in self.uses:
            if only in (None, use.trace):
                if use.trace not in traces:
                    traces[use.trace] = open_trace(use.trace)
                case = _case(self, traces[use.trace], use)
                if case is not None and case.id not in case_ids:
                    case_ids.add(case.id)
                    yield case


def file_name(overload: str) -> str:
    """Return the file name for an overload."""
    return f"{overload.partition('::')[2]}.json"


def load_all(directory: Path) -> dict[str, Fusion]:
    """Return a directory's fusions by overload, largest saving first. Raise TraceError for a damaged file."""
    fusions = [Fusion.load(path) for path in sorted(directory.glob("*.json"))]
    return {fusion.overload: fusion for fusion in sorted(fusions, key=lambda f: (-f.nbytes, f.overload))}


def fused_cases(fusions: Iterable[Fusion], trace: Trace, name: str) -> Mapping[str, list[Case]]:
    """Return the recorded calls of fusions in a trace, by overload."""
    cases_by_overload = {fusion.overload: list(fusion.cases(lambda _: trace, name)) for fusion in fusions}
    return {overload: cases for overload, cases in cases_by_overload.items() if cases}


def _case(fusion: Fusion, trace: Trace, use: RecordedUse) -> Case | None:
    """Return the case for a use, or None if an input's contents were not recorded."""
    from blake3 import blake3

    from traces.contents import REPLAYABLE
    from traces.materialise import identity
    from verify.cases.case import Case

    records = [trace.record(call, f"{fusion.overload} in {use.trace}") for call, _ in use.inputs]
    if any(record.level not in REPLAYABLE for record in records):
        return None
    try:
        refs = [record.header["tensors"][k] for record, (_, k) in zip(records, use.inputs, strict=True)]
        identities = [
            fusion.overload,
            *(f"{identity(trace, r)} {k}" for r, (_, k) in zip(records, use.inputs, strict=True)),
        ]
        layouts = json.dumps([[ref["dtype"], ref["shape"], ref["stride"]] for ref in refs])
        shapes, dtypes = tuple(tuple(ref["shape"]) for ref in refs), tuple(str(ref["dtype"]) for ref in refs)
    except (KeyError, TypeError, IndexError) as error:
        raise TraceError(f"{trace.path}: no inputs of {fusion.overload} there ({error!r})") from error
    if shapes != use.shapes or dtypes != tuple(a.dtype for a in fusion.subgraph.inputs):
        raise TraceError(
            f"{trace.path} was recorded anew since {fusion.overload} was found: {program_name()} fuse {use.trace}"
        )
    name = blake3("\n".join(identities).encode()).hexdigest()[:32]
    signature = blake3(f"{fusion.overload}{layouts}".encode()).hexdigest()[:16]
    return Case(name, fusion.overload, signature, partial(_packed, trace, use), shapes, dtypes)


def _packed(trace: Trace, use: RecordedUse) -> Packed:
    """Return the inputs as arguments of one call, each in its own memory."""
    from traces.values import pack, unpack

    arguments = {}
    for i, (call, tensor) in enumerate(use.inputs):
        source = trace.packed(trace.record(call, str(trace.path)))
        alone = type(source)({"a": {"tensor": tensor}}, source.tensors, source.groups, source.data)
        arguments[f"a{i}"] = unpack(alone)["a"]
    packed = pack(arguments)
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    return packed


def check_known(fusions: Mapping[str, Fusion], overload: str) -> Fusion:
    """Return the fusion with this name. Raise UserError if there is none."""
    if overload not in fusions:
        have = ", ".join(list(fusions)[:4]) or "none yet"
        raise UserError(f"no fusion {overload} here (there are: {have}); find some: {program_name()} fuse MODEL")
    return fusions[overload]
