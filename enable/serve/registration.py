"""Register kernels under a backend's ATen dispatch key, below autograd, so that PyTorch calls them for its tensors."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

from enable.serve.arguments import is_number, operand_dtype, tensor_places
from enable.serve.backends import BACKENDS
from enable.serve.counts import Counts
from enable.serve.server import Server
from enable.serve.shortcuts import MISS
from traces.errors import UserError
from traces.overloads import name_of, resolve

# ATen's kernels for these overloads convert a number to a GPU tensor, mark it as a number and pass it to another
# overload (ATen/native: Pow.cpp, TensorCompare.cpp, Bucketization.cpp). A Python kernel cannot receive such a tensor.
_OF_NUMBERS = {
    "aten::pow.Scalar": "aten::pow.Tensor_Tensor",
    "aten::pow.Scalar_out": "aten::pow.Tensor_Tensor_out",
    "aten::isin.Scalar_Tensor": "aten::isin.Tensor_Tensor",
    "aten::isin.Scalar_Tensor_out": "aten::isin.Tensor_Tensor_out",
    "aten::isin.Tensor_Scalar": "aten::isin.Tensor_Tensor",
    "aten::isin.Tensor_Scalar_out": "aten::isin.Tensor_Tensor_out",
    "aten::searchsorted.Scalar": "aten::searchsorted.Tensor",
    "aten::searchsorted.Scalar_out": "aten::searchsorted.Tensor_out",
    "aten::bucketize.Scalar": "aten::bucketize.Tensor",
    "aten::bucketize.Scalar_out": "aten::bucketize.Tensor_out",
}
_CALLED_WITH_NUMBERS = frozenset(_OF_NUMBERS.values())


class Registration:
    """A registration, in force until `undo`.

    Attributes:
        device: Device type.
        left_out: Overloads that have a kernel but were not registered, with the reason.
        executor: The object that answers calls on a device that the dispatcher does not know, or None.
    """

    def __init__(  # noqa: PLR0913 - the state, and how to end and resume it
        self,
        device: str,
        server: Server,
        left_out: Mapping[str, str],
        undo: Callable[[], None],
        executor: Any = None,
        again: Callable[[], Callable[[], None]] | None = None,
    ) -> None:
        """Put the registration in force.

        `executor` answers calls if the dispatcher does not know the device. `again` registers anew after `undo` and
        returns the next `undo`.
        """
        self.device = device
        self._server = server
        self.left_out = left_out
        self.executor = executor
        self._undo, self._again = undo, again
        _in_force[device].append(self)

    @property
    def counts(self) -> Counts:
        """Return the counts of served and unserved calls so far."""
        return self._server.counts

    @property
    def native(self) -> bool:
        """Return True if repeated calls are answered without Python."""
        return self._server.native is not None

    def undo(self) -> None:
        """Restore the state before the registration. A second undo does nothing.

        Raises:
            UserError: A later registration on the device is in force; that one passes calls on to this one.
        """
        stack = _in_force[self.device]
        if self not in stack:
            return
        if stack[-1] is not self:
            raise UserError(f"a later registration on {self.device} is in force; undo that one first")
        stack.pop()
        self._undo()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Remove the registration inside the block, so that calls run as if it had never been made.

        The same server is registered again at the end and keeps its decisions and shortcuts. That takes about 50 ms.

        Raises:
            UserError: This is not the latest registration on a device of the dispatcher.
        """
        if self._again is None or _in_force[self.device][-1:] != [self]:
            raise UserError("only the latest registration on a device can be suspended, and none on sim")
        self._undo()
        try:
            yield
        finally:
            self._undo = self._again()


_in_force: defaultdict[str, list[Registration]] = defaultdict(list)  # by device, innermost last


def innermost(device: str) -> Any:
    """Return the executor of the latest registration in force on a device, or None."""
    stack = _in_force[device]
    return stack[-1].executor if stack else None


def under_dispatcher(
    server: Server,
    device: str,
    overloads: Collection[str],
    left_out: Mapping[str, str],
    around: AbstractContextManager[Any] | None = None,
) -> Registration:
    """Register a server for these overloads; calls that it does not serve go to the kernel that was registered before.

    Args:
        server: Answers the calls.
        device: A device type in `BACKENDS`.
        overloads: Overloads to register.
        left_out: Overloads that are not registered, with the reason.
        around: Entered with the registration and left with it; a dispatch mode is for this thread and its backward.

    Raises:
        UserError: torch has no `torch.library.get_kernel`.
    """
    if not hasattr(torch.library, "get_kernel"):
        raise UserError(f"registration needs torch 2.10 or newer, this is {torch.__version__}; update it")
    put = partial(_put, server, device, overloads, around or nullcontext())
    return Registration(device, server, left_out, put(), again=put)


def _put(
    server: Server, device: str, overloads: Collection[str], around: AbstractContextManager[Any]
) -> Callable[[], None]:
    """Register the server with the dispatcher and return the function that undoes it."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    overloads = {*overloads, *_of_numbers(overloads)}
    with ExitStack() as stack, warnings.catch_warnings():
        stack.callback(library._destroy)
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel", UserWarning)
        for overload in overloads:
            for key in _keys(server, overload, BACKENDS[device].key):
                library.impl(  # type: ignore[no-untyped-call]
                    overload.removeprefix("aten::"),
                    _implementation(server, resolve(overload), key),
                    key,
                    allow_override=True,  # replaces an earlier registration, to which unserved calls are passed
                )
        if server.native is not None:
            ops = [(resolve(o), key) for o in overloads for key in _keys(server, o, BACKENDS[device].key)]
            stack.enter_context(server.native.before(ops))
        stack.enter_context(around)
        return stack.pop_all().close


def _keys(server: Server, overload: str, key: str) -> tuple[str, ...]:
    """Return the dispatch keys under which the overload is served."""
    return (key, f"Sparse{key}") if server.takes_sparse(overload) else (key,)


def _implementation(server: Server, op: OpOverload, key: str) -> Callable[..., Any]:
    """Return the function that the dispatcher calls: the server first, then the previous kernel."""
    hand_on = None if name_of(op) in _OF_NUMBERS else _kernel(op, key)

    def implementation(*args: Any, **kwargs: Any) -> Any:
        answer = server.answer(op, args, kwargs)
        if answer is not MISS:
            return answer
        if form := form_with_tensor(op, args):
            return form[0](*form[1], **kwargs)
        if hand_on is None:
            raise NotImplementedError(f"{op._name}: neither PyTorch nor the library has a kernel for it on {key}")
        return hand_on(*args, **kwargs)

    return implementation


def _of_numbers(overloads: Collection[str]) -> Iterable[str]:
    """Return the keys of `_OF_NUMBERS` whose ATen kernels call one of these overloads, perhaps its `out` form."""
    packets = {overload.partition(".")[0] for overload in overloads if overload in _CALLED_WITH_NUMBERS}
    return [number for number in _OF_NUMBERS if number.partition(".")[0] in packets]


def form_with_tensor(op: OpOverload, args: tuple[Any, ...]) -> tuple[OpOverload, tuple[Any, ...]] | None:
    """Return the tensor overload from `_OF_NUMBERS`, and the arguments with a 0-dim tensor in place of the number."""
    if name_of(op) not in _OF_NUMBERS:
        return None
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    converted = [
        torch.scalar_tensor(a, dtype=operand_dtype(a, tensors), device=tensors[0].device) if is_number(a) else a
        for a in args[:2]
    ]
    return resolve(_OF_NUMBERS[name_of(op)]), (*converted, *args[2:])


def _without_numbers(op: OpOverload, args: tuple[Any, ...]) -> Iterable[Any]:
    """Return the arguments with a tensor wherever the schema has one.

    PyTorch gives a Python kernel a number in place of the 0-dim tensor that it made from one. A native kernel needs
    the tensor back.
    """
    numbers = [i for i in tensor_places(op) if i < len(args) and is_number(args[i])]
    if not numbers:
        return args
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    converted = {i: torch.scalar_tensor(args[i], dtype=operand_dtype(args[i], tensors)) for i in numbers}
    return [converted.get(i, a) for i, a in enumerate(args)]


def _kernel(op: OpOverload, key: str) -> Callable[..., Any] | None:
    """Return the kernel that PyTorch would run for the operator under this key, or None."""
    try:
        native = torch.library.get_kernel(op, key)
    except RuntimeError:
        return None
    # passing on each call's own keys would cost 1 us
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    return lambda *args, **kwargs: native.call_boxed(keys, *_without_numbers(op, args), **kwargs)
