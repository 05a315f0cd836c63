"""`sim`: a PyTorch device in Python, which offers only the operators that an executor provides.

    from enablekit import sim

    sim.install()
    with sim.executing(sim.on_cpu):
        model.to("sim")

Like an accelerator with its first driver, the device itself has memory, views, transfers and `item()`. Every other ATen
overload that reaches it goes to the active executor, with tensors in host memory. Without an executor it raises
NotImplementedError. Autograd, optimizers, `torch.save` and the rest of PyTorch work as on any device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch._ops import OpOverload
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from capture import sim_autocast, sim_cells, sim_control, sim_subclasses
from capture.out_of_tree import prepare
from capture.sim_factories import factories
from capture.sim_module import Guard, Module, patch_torch, present
from traces.errors import UserError
from traces.facts import tagged
from traces.live import tensors_in
from traces.overloads import in_python, kind, name_of, resolve, written
from traces.program import program_name
from traces.widening import answer

NAME = "sim"
Executor: TypeAlias = Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Any]

_CPU = torch.device("cpu")
_PROVIDED = ("view", "memory")  # kinds of work that the device does itself
_COPIES = tagged("device_copies")
_HOST_INDICES = tagged("takes_host_indices")
_failed: list[Exception] = []  # the last error of a call on the device


class _InForce(NamedTuple):
    """An active executor, the thread that activated it, and that thread's intra-operator thread count."""

    executor: Executor
    thread: int
    threads: int


class _Host(threading.local):
    """The current thread's state: `computes` inside the executor `on_cpu`, `serves` inside any device call."""

    computes = False
    serves = False


_host = _Host()
_executors: list[_InForce] = []  # innermost last; per process, because autograd runs backward in its own threads


def on_cpu(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Execute any operator with ATen's CPU kernels, in a wider dtype if they do not support the call's dtype."""
    before, _host.computes = _host.computes, True
    try:
        return answer(op, args, kwargs)
    finally:
        _host.computes = before


def compute(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the operator for a mode that follows the CPU's calls, with `on_cpu`'s fallback if it is for the device."""
    return answer(op, args, kwargs) if _host.computes else op(*args, **kwargs)


def executing_device() -> str | None:
    """Return the device for which an operator on host tensors runs, or None if no executor is active."""
    if not _executors:
        return None
    return f"{NAME}:0" if _host.serves else "cpu"


@contextmanager
def _serving() -> Iterator[None]:
    before, _host.serves = _host.serves, True
    try:
        yield
    finally:
        _host.serves = before


def missing(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Raise NotImplementedError, as the executor of a bare device."""
    name = name_of(op)
    raise NotImplementedError(
        f"{name}: device sim has no kernel for it; write one: {program_name()} refine --op {name}"
    )


def _is_composite(func: OpOverload) -> bool:
    """Return True if the device runs the operator by other operators, because it has no kernel of its own for it."""
    keys = torch._C.DispatchKey
    of_parts = func.has_kernel_for_dispatch_key(keys.CompositeImplicitAutograd)
    return of_parts and not func.has_kernel_for_dispatch_key(keys.PrivateUse1)


def _executor() -> Executor:
    if not _executors:
        return missing
    executor, thread, threads = _executors[-1]
    if thread != threading.get_ident() and threads != torch.get_num_threads():
        torch.set_num_threads(threads)  # decides the order in sums; autograd keeps the number of its first backward
    return executor


@contextmanager
def executing(executor: Executor, kernels: Iterable[str] = ()) -> Iterator[None]:
    """Make an executor active inside the block, in every thread of the process. Blocks nest.

    Operators use the thread count of the thread that enters. Nothing is compiled inside. `kernels` lists overloads for
    which the executor has kernels, so that those which PyTorch composes but differentiates as a whole, such as
    aten::silu_backward, arrive as a whole.
    """
    entry = _InForce(executor, threading.get_ident(), torch.get_num_threads())
    _executors.append(entry)
    try:
        with _registered_whole(kernels), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        _executors.remove(entry)


@contextmanager
def _registered_whole(kernels: Iterable[str]) -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for op in filter(_is_composite, map(resolve, kernels)):
        if op.has_kernel_for_dispatch_key(torch._C.DispatchKey.Autograd):
            library.impl(op, partial(_made, op), "PrivateUse1")  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        library._destroy()  # type: ignore[no-untyped-call]


def own_kernels() -> list[str]:
    """Return the overloads that PyTorch would compose from others, and for which the device has a kernel."""
    names = (n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::"))
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return sorted(n for n in names if has(n, "PrivateUse1") and has(n, "CompositeImplicitAutograd"))


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the original error again if autograd's engine loses it, for `torch.autograd.backward` and `grad`.

    If a device in Python raises, the engine raises SystemError instead. `Tensor.backward` uses this block itself.
    """
    _failed.clear()
    try:
        yield
    except SystemError as error:
        if not _failed:
            raise
        raise _failed.pop() from error


def host(value: torch.Tensor) -> torch.Tensor:
    """Return the host tensor that holds the memory of a tensor on this device."""
    return value._host if isinstance(value, SimTensor) else value


class SimTensor(torch.Tensor):
    """A tensor on the device: the metadata that PyTorch sees, over a host tensor with the same metadata."""

    _host: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: type[SimTensor], host_tensor: torch.Tensor) -> SimTensor:
        host_tensor = host_tensor.resolve_conj().resolve_neg()  # PyTorch would not see the bits of the host tensor
        same_mode = host_tensor.is_inference() == torch.is_inference_mode_enabled()  # views keep the mode of their base
        with nullcontext() if same_mode else torch.inference_mode(host_tensor.is_inference()):
            wrapper: SimTensor = torch.Tensor._make_wrapper_subclass(
                cls,
                host_tensor.shape,
                strides=host_tensor.stride(),
                storage_offset=host_tensor.storage_offset(),
                dtype=host_tensor.dtype,
                layout=host_tensor.layout,
                device=f"{NAME}:0",  # type: ignore[arg-type]
            )
        wrapper._host = host_tensor
        return wrapper

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(not issubclass(t, SimTensor) for t in types):  # a jagged tensor calls on its parts, which are here
            return NotImplemented
        kwargs = kwargs or {}
        if _is_composite(func):  # under inference_mode composite operators arrive undecomposed
            return func.decompose(*args, **kwargs)
        parts = in_python(func)
        if parts is not None:
            return parts(*args, **kwargs)
        name = name_of(func)
        transfer = name in _COPIES and _devices(func, args, kwargs) != {NAME}
        lowered, named = tuple(map(_lower, args)), {k: _lower(v) for k, v in kwargs.items()}
        try:
            with _serving():
                if transfer or kind(func) in _PROVIDED:
                    result = func(*lowered, **named)
                else:
                    if func._schema.name.removeprefix("aten::") not in _HOST_INDICES:
                        _check_devices(name, args, kwargs)
                    result = _executor()(func, lowered, named)
        except Exception as error:
            _failed[:] = [error]
            raise
        return _raised(func, args, kwargs, result)

    def backward(self, *args: Any, **kwargs: Any) -> None:
        with own_errors():
            super().backward(*args, **kwargs)  # type: ignore[no-untyped-call]

    @property
    def data(self) -> torch.Tensor:
        return torch.Tensor.data.__get__(self)  # type: ignore[attr-defined, no-any-return]

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        torch.Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self._host = host(value)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        text = repr(self.detach().cpu())
        words = [f"device='{self.device}'"]
        if self.grad_fn is not None:
            words.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            words.append("requires_grad=True")
        head = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
        return f"{head}{text[:-1]}, {', '.join(words)})"

    def data_ptr(self) -> int:
        return self._host.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self._host.untyped_storage()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(f"can't convert {self.device} device type tensor to numpy; use Tensor.cpu() first")

    def __format__(self, spec: str) -> str:
        return self.item().__format__(spec) if spec and not self.dim() else object.__format__(self, spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        arguments = (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad)
        plain = (torch._utils._rebuild_device_tensor_from_cpu_tensor, arguments)
        if not getattr(self, "_is_param", False):
            return plain
        return (torch._utils._rebuild_parameter, (plain[0](*arguments).detach(), self.requires_grad, {}))  # type: ignore[no-untyped-call]


def _lower(value: Any) -> Any:
    """Return an argument as the host sees it."""
    if isinstance(value, SimTensor):
        return value._host
    if isinstance(value, torch.device):
        return _CPU if present(value).type == NAME else value
    if isinstance(value, list | tuple):
        return type(value)(map(_lower, value))
    return value


def _raised(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """Return a result as the device's user sees it: written arguments are the same objects, with their new shapes."""
    outputs: dict[int, torch.Tensor] = {}
    if written(func):
        for argument in tensors_in((args, kwargs)):
            outputs[id(host(argument))] = argument
            if isinstance(argument, SimTensor):
                _follow(argument)
    stays = _target(func, args, kwargs)

    def up(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return outputs.get(id(value)) if id(value) in outputs else value if stays == "cpu" else SimTensor(value)
        if isinstance(value, list | tuple):
            return type(value)(map(up, value))
        return value

    return up(result)


def _target(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the device type for new results: that of the `device` argument, or else this device."""
    device = kwargs.get("device")  # a custom operator may use this name for another type
    return device.type if isinstance(device, torch.device) else NAME


def _follow(tensor: SimTensor) -> None:
    """Adopt the shape and strides of the host tensor, which `out=` or an in-place view may have changed."""
    host_tensor = tensor._host
    now = (host_tensor.shape, host_tensor.stride(), host_tensor.storage_offset())
    if (tensor.shape, tensor.stride(), tensor.storage_offset()) != now:
        torch.Tensor.data.__set__(tensor, SimTensor(host_tensor))  # type: ignore[attr-defined]


def _devices(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[str]:
    """Return the device types between which a copy moves data."""
    return {t.device.type for t in tensors_in((args, kwargs))} | {_target(func, args, kwargs)}


def _check_devices(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError, as other devices do, if a host tensor is mixed in; 0-dim tensors count as numbers."""
    strangers = {str(t.device) for t in tensors_in((args, kwargs)) if not isinstance(t, SimTensor) and t.dim()}
    if strangers:
        where = f"{NAME}:0 and {', '.join(sorted(strangers))}"
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found at least two, {where}!")


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between host and device below `__torch_dispatch__`, as PyTorch does in `torch.tensor(data, device=)`."""
    with _serving():
        host(target).copy_(host(source))
    return target


def _made(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Pass a factory call to the executor unchanged, so that the executor's kernels cover factories too."""
    named = {name: _lower(value) for name, value in kwargs.items()}
    with _serving():
        result = op(*args, **named) if kind(op) in _PROVIDED else _executor()(op, args, named)
    return SimTensor(result)


def _zeros(size: list[int], dtype: torch.dtype | None = None, **kwargs: Any) -> SimTensor:
    """Create the zeros that stand for derivatives that are zero everywhere; the CPU's version has no memory."""
    with _serving():
        zeros = torch.zeros(size, dtype=dtype)
    return SimTensor(zeros)


def arriving(op: OpOverload, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """Return the function that creates a tensor here from nothing or a host tensor, for a mode to follow its calls."""
    device = kwargs.get("device")  # a custom operator may use this name for another type
    if not isinstance(device, torch.device) or device.type != NAME:
        return None
    if op in _registered:
        return partial(_made, op)
    return (
        (lambda *args, **named: SimTensor.__torch_dispatch__(op, (), args, named)) if name_of(op) in _COPIES else None
    )


_libraries: list[torch.library.Library] = []
_registered: set[OpOverload] = set()  # factories


def install() -> None:
    """Register the device with PyTorch for the process. Raise UserError if another out-of-tree device is loaded.

    Moving a module keeps parameters tied (capture/out_of_tree.py).
    """
    if _libraries:
        return
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", NAME):
        raise UserError(f"PyTorch has room for one out-of-tree device, and {taken} is loaded; start another process")
    # Tensors are saved as host tensors that return to their device on loading, so a storage stays in place.
    torch.serialization.register_package(
        0, lambda _: None, lambda s, location: s if str(location).startswith(NAME) else None
    )
    _setup_privateuseone_for_python_backend(NAME, Module(), device_guard=Guard())
    patch_torch()
    prepare()
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    _libraries.append(library)
    library.impl("_efficientzerotensor", _zeros, "PrivateUse1")  # type: ignore[no-untyped-call]
    library.impl("_copy_from", _copy_from, "PrivateUse1")  # type: ignore[no-untyped-call]
    library.impl("_local_scalar_dense", lambda t: host(t).item(), "PrivateUse1")  # type: ignore[no-untyped-call]
    if not torch.cuda.is_available():  # the device's memory is host memory, so pinning is a copy
        library.impl("_pin_memory", lambda t, device=None: t.clone(), "CPU")  # type: ignore[no-untyped-call]
    _libraries.extend((*sim_autocast.install(NAME), sim_cells.install()))
    sim_control.install(SimTensor)
    sim_subclasses.install(SimTensor)
    for op in factories():
        library.impl(op, partial(_made, op), "PrivateUse1")  # type: ignore[no-untyped-call]
        _registered.add(op)
