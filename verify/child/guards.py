"""What a wrapper asks of PyTorch while it runs, by thread, and what it launches: noted, not forbidden.

Three nets, because each has holes. A dispatch mode sees operators with their overloads. A function mode sees what reads
a tensor on the host without dispatching (`numpy`, `tolist`, `apply_`). The profiler sees every operator of the thread,
also one called while modes are switched off. Threads that the wrapper starts are watched the same way.
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
from verify.excerpts import MAX_PRINTED

MAX_SCALARS = 1000  # values read back that are reported
MAX_NAMES = 100

_HOST_DATA = tagged("host_data")
_HOST_READS = frozenset(
    {"numpy", "tolist", "apply_", "map_", "map2_", "__array__", "__dlpack__", "__reduce_ex__", "__deepcopy__"}
)
_WRITES = tagged("fills")
_MODE_EVENT = "PythonDispatchMode"  # what the profiler calls a dispatch mode's handler


class ArgumentTypeError(TypeError):
    """A launch got an argument that no GPU launch can take."""


class Notes:
    """What one request's reply says beside the result."""

    def __init__(self) -> None:
        self.clear()

    def clear(self, answers: list[Any] | None = None) -> None:
        """Forget the last request. answers: what successive reads of a scalar get, instead of the tensor's value."""
        self.answers = answers
        self.spans: dict[int, int] = {}  # bytes of the elements of a rebuilt argument, by the address of its storage
        self.operators: dict[str, None] = {}  # in the order they were first called
        self.launch_operators: dict[str, None] = {}
        self.kernels: list[str] = []  # names, one a launch
        self.launched: list[str] = []  # of the first launches what was launched, but for those of `tuning`
        self.digest = hashlib.sha256()  # of all of them
        self.configurations = 1  # of the autotuner that has most
        self.variants: dict[str, None] = {}  # of kernels, as they were specialised for their launches
        self.refused = ""  # the compiler's log of the first launch that it refused, whatever the wrapper made of that
        self.scalars: list[Any] = []
        self.threads = 0
        self.aliases_earlier = False
        self.types: list[str] = []
        self.globals: list[str] = []
        self.accesses: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.printed = ""
        self.seconds = 0.0  # that this thread computed in kernels
        self.accessed = self.lanes = 0  # loads, stores and atomics of programs, and their lanes
        self.allocated = 0  # bytes
        self.widest = 1  # the most programs in y or z of a grid

    def operator(self, name: str) -> None:
        noted = self.launch_operators if getattr(_local, "launching", False) else self.operators
        noted[name] = None

    def launch(self, told: str) -> None:
        """told: kernel, grid and arguments."""
        if not self.tunes:
            self.digest.update(f"{told}\n".encode())
            self.launched += [told] if len(self.launched) < MAX_NAMES else []

    @property
    def tunes(self) -> bool:
        """Whether an autotuner tries a configuration."""
        return getattr(_local, "tuning", False)

    @contextmanager
    def tuning(self) -> Iterator[None]:
        """While an autotuner tries a configuration, its launches are not the wrapper's."""
        _local.tuning = True
        try:
            yield
        finally:
            _local.tuning = False

    def reply(self) -> dict[str, Any]:
        """What every reply carries."""
        return {
            "operators": list(self.operators)[:MAX_NAMES],
            "launch_operators": list(self.launch_operators)[:MAX_NAMES],
            "kernels": sorted(set(self.kernels)),
            "launched": self.launched,
            "digest": self.digest.hexdigest(),
            "configurations": self.configurations,
            "variants": list(self.variants)[:MAX_NAMES],
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
    """A standard output that notes the beginning of what a wrapper prints, and lets go of the rest."""

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
    """Note what this thread asks of PyTorch."""
    torch._C._autograd._enable_profiler_legacy(_PROFILE)
    try:
        with _Dispatch(), _Functions():  # type: ignore[no-untyped-call]
            yield
    finally:
        for name in _unseen(torch._C._autograd._disable_profiler_legacy()):
            notes.operators[name] = None


@contextmanager
def launching() -> Iterator[None]:
    """While a kernel's own code runs, operators are the launch's and not the wrapper's."""
    _local.launching = True
    try:
        yield
    finally:
        _local.launching = False


class _Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first call imports torch._dynamo, which takes a second or two and registers operators."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return _read_scalar(func, args[0])
        name = _noted(func)
        if name:
            notes.operator(name + _partly(func, args) + _conversion(func, args, kwargs or {}))
        size = fresh.size(func, args)
        event = launch_log.calling(func, args, kwargs or {}) if name and launch_log.on else None
        result = func(*args, **(kwargs or {}))
        if event is not None:
            launch_log.called(event, result)
        if isinstance(result, torch.Tensor) and kind(func, {}) == "memory":
            notes.allocated += nbytes(result) - size
        fresh.fill(func, result, size)
        return result


class _Functions(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.tensor and len(args) == 1 and type(args[0]) in (bool, int, float, complex):
            return torch.full((), args[0], **(kwargs or {}))  # one number, by an operator that has a name
        name = getattr(func, "__name__", "")
        if name in _HOST_READS:
            notes.operator(f"Tensor.{name}")
        return func(*args, **(kwargs or {}))


@cache
def _noted(func: OpOverload) -> str | None:
    """The overload's name, or None for a view or allocation of ATen's."""
    harmless = func.namespace == "aten" and kind(func, {}) in ("view", "memory") and base_name(func) not in _HOST_DATA
    return None if harmless else name_of(func)


def _partly(func: OpOverload, args: tuple[Any, ...]) -> str:
    """Whether a fill or copy writes a part of its tensor's memory, which makes it another operator, that builds."""
    if base_name(func) not in _WRITES or args[0].layout is not torch.strided:
        return ""
    storage = args[0].untyped_storage()
    whole = notes.spans.get(storage.data_ptr(), storage.nbytes())
    return "" if args[0].numel() * args[0].element_size() >= whole else " of a part"


def _holds(to: torch.dtype, given: torch.dtype) -> bool:
    """Whether a conversion only keeps numbers, or rounds them to a floating dtype as a kernel's store would."""
    return torch.promote_types(to, given) == to or (to.is_floating_point and given.is_floating_point)


def _conversion(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What a copy computes on the way, which makes it another operator than one that only copies."""
    if base_name(func) == "_to_copy":
        given, to = args[0].dtype, kwargs.get("dtype") or args[0].dtype
        return "" if _holds(to, given) else f" ({given} to {to})".replace("torch.", "")
    if base_name(func) != "copy_" or not isinstance(args[1], torch.Tensor):
        return ""
    to, given = args[:2]
    if to.dtype is not given.dtype:
        return f" ({given.dtype} to {to.dtype})".replace("torch.", "")
    return " (conj or neg bit)" if (to.is_conj(), to.is_neg()) != (given.is_conj(), given.is_neg()) else ""


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
    """Operators in a profile that reached their kernels without passing the dispatch mode."""
    found: list[str] = []
    for events in threads:
        stack: list[tuple[str, list[bool]]] = []  # name, whether the mode was entered below it
        seen = 0  # open handlers of the mode; what they call is theirs
        for event in events:
            if event.kind() == "push":
                stack.append((event.name(), [False]))
                seen += event.name() == _MODE_EVENT
            elif event.kind() == "pop" and stack:
                name, (passed,) = stack.pop()
                seen -= name == _MODE_EVENT
                if passed or name == _MODE_EVENT:
                    if stack:
                        stack[-1][1][0] = True
                elif not seen and _computes(name):
                    found.append(name)
    return found


@cache
def _computes(name: str) -> bool:
    """Whether an operator of this name, overload unknown, has a kernel of its own that is no view or allocation."""
    namespace, _, base = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), base, None) if base.isidentifier() else None
    if not isinstance(packet, OpOverloadPacket):
        return False
    names = [f"{name}.{overload}".removesuffix(".") for overload in packet._overload_names]
    return any(_has_kernel(n) and _noted(resolve(n)) for n in names)


def _has_kernel(name: str) -> bool:
    """Whether the overload is dispatched as one, and not as the operators that it is made of."""
    made_of_others = "CompositeImplicitAutograd"
    return bool(
        torch._C._dispatch_has_kernel(name) and not torch._C._dispatch_has_kernel_for_dispatch_key(name, made_of_others)
    )


def count_threads() -> int:
    """Threads that run Python code, however they were started."""
    return len(sys._current_frames())


def watch_threads() -> None:
    """Have every thread that is started from now on watched."""
    original = _thread.start_new_thread

    def start(function: Callable[..., Any], args: Any, kwargs: Any = None) -> int:
        def run(*args: Any, **kwargs: Any) -> None:
            with watched():
                function(*args, **kwargs)

        return original(run, args, kwargs or {})

    _thread.start_new_thread = start
    threading._start_new_thread = start  # type: ignore[attr-defined]


def check_arguments(kernel: str, arguments: Mapping[str, Any], constexprs: Collection[str]) -> None:
    """Raises ArgumentTypeError, and notes it, if an argument is an object that only Python can use."""
    for name, value in arguments.items():
        wrong = _foreign(value, name in constexprs)
        if wrong is not None:
            text = f"{kernel}: argument {name} is a {wrong}; a launch takes tensors, numbers and compile-time constants"
            notes.types.append(text)
            raise ArgumentTypeError(text)


def _foreign(value: Any, constant: bool) -> str | None:
    """The name of the type that is no kernel's argument, or None."""
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
