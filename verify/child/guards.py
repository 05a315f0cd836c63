"""Record operators, launches and host reads of a wrapper, in each thread; nothing is forbidden here.

Three mechanisms are needed, because each has gaps. A dispatch mode sees operators with their overloads. A
function mode sees functions that read a tensor on the host without dispatch (`numpy`, `tolist`, `apply_`). The
profiler sees every operator of the thread, even if modes are switched off. Threads that the wrapper starts are
watched in the same way.
"""

from __future__ import annotations

import _thread
import hashlib
import io
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._C._profiler import ProfilerState, _ExperimentalConfig
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from traces.facts import tagged
from traces.overloads import base_name, kind, name_of, resolve
from verify.child.fresh import fresh, nbytes
from verify.child.launch_log import launch_log
from verify.child.translated import translated
from verify.excerpts import MAX_PRINTED

MAX_SCALARS = 1000  # scalars read back that are reported
MAX_NAMES = 100
MAX_METADATA = 64  # integers that a wrapper may put into a tensor; usual results are longer

_HOST_DATA = tagged("host_data")
_HOST_READS = frozenset(
    {"numpy", "tolist", "apply_", "map_", "map2_", "__array__", "__dlpack__", "__reduce_ex__", "__deepcopy__"}
)
_WRITES = tagged("fills")
_MODE_EVENT = "PythonDispatchMode"  # profiler's name for the handler of a dispatch mode


class ArgumentTypeError(TypeError):
    """Error raised if a launch has an argument that no GPU launch can take."""


class Notes:
    """Observations of one request, which its reply carries in addition to the result."""

    def __init__(self) -> None:
        self.clear()

    def clear(self, answers: list[Any] | None = None) -> None:
        """Clear the notes from the last request.

        Args:
            answers: Values that successive scalar reads return instead of the tensor's value.
        """
        self.answers = answers
        self.spans: dict[int, int] = {}  # bytes in a rebuilt argument's elements, by its storage's address
        self.operators: dict[str, None] = {}  # in the order of their first calls
        self.launch_operators: dict[str, None] = {}
        self.kernels: list[str] = []  # names, one for each launch
        self.launched: list[str] = []  # descriptions of the first launches, without those during autotuning
        self.digest = hashlib.sha256()  # digest of all these launches
        self.configurations = 1  # highest number of configurations in an autotuner
        self.variants: dict[str, None] = {}  # kernel specialisations for its launches
        # compiler's log of the first launch that failed to compile, even if the wrapper caught the error
        self.refused = ""
        self.scalars: list[Any] = []
        self.threads = 0
        self.aliases_earlier = False
        self.types: list[str] = []
        self.globals: list[str] = []
        self.accesses: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.printed = ""
        self.seconds = 0.0  # time that this thread spent in kernels
        self.accessed = self.lanes = 0  # loads, stores and atomics by program instances, and their lanes
        self.allocated = 0  # bytes
        self.widest = 1  # largest number of program instances in a grid's y or z

    def operator(self, name: str) -> None:
        operators = self.launch_operators if getattr(_local, "launching", False) else self.operators
        operators[name] = None

    def launch(self, description: str) -> None:
        """Record a launch; `description` has the kernel, the grid and the arguments."""
        if not self.tunes:
            self.digest.update(f"{description}\n".encode())
            self.launched += [description] if len(self.launched) < MAX_NAMES else []

    @property
    def tunes(self) -> bool:
        """Return True while an autotuner tries a configuration."""
        return getattr(_local, "tuning", False)

    @contextmanager
    def tuning(self) -> Iterator[None]:
        """Mark launches as the autotuner's and not the wrapper's."""
        _local.tuning = True
        try:
            yield
        finally:
            _local.tuning = False

    def reply(self) -> dict[str, Any]:
        """Return the fields that every reply carries."""
        return {
            "operators": list(self.operators)[:MAX_NAMES],
            "launch_operators": list(self.launch_operators)[:MAX_NAMES],
            "kernels": sorted(set(self.kernels)),
            "launched": self.launched,
            "digest": self.digest.hexdigest(),
            "configurations": self.configurations,
            "variants": list(self.variants)[:MAX_NAMES],
            "met": translated.met()[:MAX_NAMES],
            "refused": self.refused,
            "scalars": self.scalars,
            "threads": self.threads,
            "aliases_earlier": self.aliases_earlier,
            "types": self.types[:MAX_NAMES],
            "globals": self.globals[:MAX_NAMES],
            "accesses": list(self.accesses.values()),
            "printed": self.printed,
            "seconds": self.seconds,
            "accessed": self.accessed,
            "lanes": self.lanes,
            "allocated": self.allocated,
            "widest": self.widest,
        }


class Printed(io.TextIOBase):
    """Standard output that records the beginning of a wrapper's output and discards the rest."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        notes.printed += text[: max(0, MAX_PRINTED - len(notes.printed))]
        return len(text)


notes = Notes()
_local = threading.local()
_PROFILE = torch._C._profiler.ProfilerConfig(
    ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig()
)


@contextmanager
def watched() -> Iterator[None]:
    """Record the PyTorch operators that this thread calls."""
    torch._C._autograd._enable_profiler_legacy(_PROFILE)
    try:
        with _Dispatch(), _Functions():  # type: ignore[no-untyped-call]
            yield
    finally:
        for name in _unseen(torch._C._autograd._disable_profiler_legacy()):
            notes.operators[name] = None


@contextmanager
def launching() -> Iterator[None]:
    """Attribute operators to the launch and not to the wrapper while a kernel's own code runs."""
    _local.launching = True
    try:
        yield
    finally:
        _local.launching = False


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Avoid the import of torch._dynamo on the first call: it takes 1 to 2 s and registers operators."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return _read_scalar(func, args[0])
        if getattr(_local, "quiet", False):
            return func(*args, **(kwargs or {}))
        name = _noted(func)
        if name:
            notes.operator(name + _partly(func, args) + _conversion(func, args, kwargs or {}))
        size = fresh.size(func, args)
        event = launch_log.calling(func, args, kwargs or {}) if name and launch_log.on else None
        result = func(*args, **(kwargs or {}))
        if event is not None:
            launch_log.called(event, result)
        if name:
            fresh.filled(func, args, kwargs or {})
        if isinstance(result, torch.Tensor) and kind(func, {}) == "memory":
            notes.allocated += nbytes(result) - size
        fresh.fill(func, result, size)
        return result


class _Functions(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.tensor and len(args) == 1 and type(args[0]) in (bool, int, float, complex):
            return torch.full((), args[0], **(kwargs or {}))  # creates the number with a named operator
        if func is torch.tensor and len(args) == 1 and _few_integers(args[0]):
            with _quiet():
                return func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in _HOST_READS:
            notes.operator(f"Tensor.{name}")
        return func(*args, **(kwargs or {}))


def _few_integers(value: Any) -> bool:
    """Return True for sizes, strides and the like, which a kernel may take in a tensor."""
    return isinstance(value, list | tuple) and len(value) <= MAX_METADATA and all(type(n) is int for n in value)


@contextmanager
def _quiet() -> Iterator[None]:
    """Record no operators; memory that is written at once need not be filled, which would be one of them."""
    fills = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    _local.quiet = True
    try:
        yield
    finally:
        _local.quiet = False
        torch.utils.deterministic.fill_uninitialized_memory = fills  # type: ignore[attr-defined]


@cache
def _noted(func: OpOverload) -> str | None:
    """Return the overload's name, or None for an ATen view or allocation."""
    harmless = func.namespace == "aten" and kind(func, {}) in ("view", "memory") and base_name(func) not in _HOST_DATA
    return None if harmless else name_of(func)


def _partly(func: OpOverload, args: tuple[Any, ...]) -> str:
    """Return " of a part" if a fill or copy writes only a part of its tensor's memory, else "".

    Such a call can assemble a result, so it is named as a different operator.
    """
    if base_name(func) not in _WRITES or args[0].layout is not torch.strided:
        return ""
    storage = args[0].untyped_storage()
    whole = notes.spans.get(storage.data_ptr(), storage.nbytes())
    return "" if args[0].numel() * args[0].element_size() >= whole else " of a part"


def _holds(to: torch.dtype, source: torch.dtype) -> bool:
    """Return True if a conversion preserves numbers, or only rounds to a floating dtype as a kernel's store does."""
    return torch.promote_types(to, source) == to or (to.is_floating_point and source.is_floating_point)


def _conversion(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return a suffix for a copy that also converts, which makes it a different operator than a plain copy."""
    if base_name(func) == "_to_copy":
        source, to = args[0].dtype, kwargs.get("dtype") or args[0].dtype
        return "" if _holds(to, source) else f" ({source} to {to})".replace("torch.", "")
    if base_name(func) != "copy_" or not isinstance(args[1], torch.Tensor):
        return ""
    to, source = args[:2]
    if to.dtype is not source.dtype:
        return f" ({source.dtype} to {to.dtype})".replace("torch.", "")
    return " (conj or neg bit)" if (to.is_conj(), to.is_neg()) != (source.is_conj(), source.is_neg()) else ""


def _read_scalar(func: OpOverload, tensor: torch.Tensor) -> Any:
    value = func(tensor)
    if notes.answers:
        answer = notes.answers.pop(0)
        value = type(value)(answer)
    if launch_log.on:
        launch_log.read(tensor, value)
    if len(notes.scalars) < MAX_SCALARS:
        notes.scalars.append(value.real if isinstance(value, complex) else value)
    return value


def _unseen(threads: Iterable[Iterable[Any]]) -> list[str]:
    """Return operators in a profile that were dispatched to kernels without passing through the dispatch mode."""
    names: list[str] = []
    for events in threads:
        stack: list[tuple[str, list[bool]]] = []  # name, and True if the mode was entered below it
        handlers = 0  # number of open handlers; operators that they call belong to the mode
        for event in events:
            if event.kind() == "push":
                stack.append((event.name(), [False]))
                handlers += event.name() == _MODE_EVENT
            elif event.kind() == "pop" and stack:
                name, (passed,) = stack.pop()
                handlers -= name == _MODE_EVENT
                if passed or name == _MODE_EVENT:
                    if stack:
                        stack[-1][1][0] = True
                elif not handlers and _computes(name):
                    names.append(name)
    return names


@cache
def _computes(name: str) -> bool:
    """Return True if some overload with this name has its own kernel and is no view or allocation."""
    namespace, _, base = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), base, None) if base.isidentifier() else None
    if not isinstance(packet, OpOverloadPacket):
        return False
    names = [f"{name}.{overload}".removesuffix(".") for overload in packet._overload_names]
    return any(_has_kernel(n) and _noted(resolve(n)) for n in names)


def _has_kernel(name: str) -> bool:
    """Return True if the overload has its own kernel and is not decomposed into other operators."""
    composite = "CompositeImplicitAutograd"
    return bool(
        torch._C._dispatch_has_kernel(name) and not torch._C._dispatch_has_kernel_for_dispatch_key(name, composite)
    )


def count_threads() -> int:
    """Count the threads that run Python code, no matter how they were started."""
    return len(sys._current_frames())


def watch_threads() -> None:
    """Watch every thread that is started from now on."""
    original = _thread.start_new_thread

    def start(function: Callable[..., Any], args: Any, kwargs: Any = None) -> int:
        def run(*args: Any, **kwargs: Any) -> None:
            with watched():
                function(*args, **kwargs)

        return original(run, args, kwargs or {})

    _thread.start_new_thread = start
    threading._start_new_thread = start  # type: ignore[attr-defined]


def check_arguments(kernel: str, arguments: Mapping[str, Any], constexprs: Collection[str]) -> None:
    """Record and raise ArgumentTypeError if an argument is an object that only Python can use."""
    for name, value in arguments.items():
        wrong = _foreign(value, name in constexprs)
        if wrong is not None:
            text = f"{kernel}: argument {name} is a {wrong}; a launch takes tensors, numbers and compile-time constants"
            notes.types.append(text)
            raise ArgumentTypeError(text)


def _foreign(value: Any, constant: bool) -> str | None:
    """Return the type name if a value is not allowed as a kernel argument, or None."""
    types = _types()
    if type(value) in (tuple, torch.Size):
        return next((wrong for v in value if (wrong := _foreign(v, constant))), None)
    if type(value) is types["constexpr"]:
        return _foreign(value.value, True)
    if type(value) in (types["descriptor"], types["reinterpreted"]):
        return _foreign(value.base, False)
    if type(value) in types["plain"] or (constant and isinstance(value, types["constants"])):
        return None
    return type(value).__name__


@cache
def _types() -> dict[str, Any]:
    from triton import language as tl
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction, TensorWrapper
    from triton.tools.tensor_descriptor import TensorDescriptor

    plain = {torch.Tensor, torch.nn.Parameter, int, float, bool, type(None), torch.dtype}
    return {
        "plain": plain,
        "constants": (str, tl.dtype, JITFunction, InterpretedFunction),
        "constexpr": tl.constexpr,
        "descriptor": TensorDescriptor,
        "reinterpreted": TensorWrapper,
    }
