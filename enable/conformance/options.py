"""Define the options of a suite run; the parent passes them to its workers as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from traces import UserError
from traces.errors import choose_from
from traces.program import program_name

if TYPE_CHECKING:
    import torch

    from enable.serve.registration import Registration
    from generate.kernel_library import Library

DEVICES = ("cpu", "cuda")
SUITES = ("opinfo", "dispatch", "torchcts")
CHECKS = {
    "opinfo": (
        *("forward", "reference", "gradients", "forward_ad", "noncontiguous", "bits", "variants", "out", "dtypes"),
        "errors",
    ),
    "dispatch": ("repeated", "bit", "offset", "stride", "dtype", "alias", "number", "device", "gradient", "graph"),
    "torchcts": (
        *("opinfo", "operators", "autograd", "dtypes", "strides", "workloads", "rng", "training", "errors"),
        "generated",
    ),
}
DTYPES = ("float32", "complex64", "bfloat16", "int64", "bool")
# limit for a sample's tensors together; small on the CPU, which interprets kernels
ELEMENTS = {"cpu": 2_000, "cuda": 100_000}


@dataclass(frozen=True)
class SuiteOptions:
    """Options of a suite run.

    Attributes:
        samples: Maximum number of samples per operator, dtype and check.
        shard: Index and number of shards.
        library: Directory of the base kernel library; empty for the packaged one.
    """

    suite: str
    device: str = "cpu"
    ops: str = "*"
    dtype_names: tuple[str, ...] = DTYPES
    checks: tuple[str, ...] = ()
    samples: int = 4
    shard: tuple[int, int] = (0, 1)
    library: str = ""
    workspace: str = ".enable"

    @property
    def dtypes(self) -> list[torch.dtype]:
        """Return the dtypes."""
        import torch

        return [getattr(torch, name) for name in self.dtype_names]

    @property
    def elements(self) -> int:
        """Return the maximum number of elements in a sample's tensors."""
        return ELEMENTS[self.device]

    def kernels(self) -> Library:
        """Return the library that is registered."""
        from enable.workspace import Workspace
        from verify import platforms

        base = Path(self.library) if self.library else None
        return Workspace(Path(self.workspace)).library(base, platforms.load(platforms.of_device(self.device)))

    def registered(self) -> Registration:
        """Register the library with this process's dispatcher."""
        from enable import library

        workspace = Path(self.workspace)
        return library.register(self.device, unverified=True, library=self.kernels(), workspace=workspace)

    @property
    def name(self) -> str:
        """Return the name of the results file without its suffix."""
        index, count = self.shard
        return f"{self.suite}-{self.device}" + (f"-{index}-of-{count}" if count > 1 else "")

    def wants(self, item: str) -> bool:
        """Return True if a pattern matches the item."""
        return any(fnmatchcase(item, pattern) for pattern in self.ops.split(","))


def checked(options: SuiteOptions) -> SuiteOptions:
    """Return the options unchanged. Raise UserError for an invalid value."""
    import torch

    hint = f"see: {program_name()} conformance {options.suite} --help"
    if options.device not in DEVICES:
        raise UserError(f"unknown device {options.device!r}{choose_from(options.device, DEVICES)}; {hint}")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"device 'cuda': PyTorch sees no GPU; try: {program_name()} conformance {options.suite} --device cpu"
        )
    for check in options.checks:
        if check not in CHECKS[options.suite]:
            raise UserError(f"unknown check {check!r}{choose_from(check, CHECKS[options.suite])}; {hint}")
    for name in options.dtype_names:
        if not isinstance(getattr(torch, name, None), torch.dtype):
            raise UserError(f"unknown dtype {name!r}{choose_from(name, (*DTYPES, 'float16', '...'))}; {hint}")
    index, count = options.shard
    if not 0 <= index < count:
        valid = f"0/{count} to {count - 1}/{count}" if count else "I/N with N of at least 1, such as 0/4"
        raise UserError(f"shard {index}/{count}: choose {valid}; {hint}")
    return options
