"""Kernels under ATen's dispatch key of a backend, below autograd: PyTorch calls them for the backend's own tensors."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

from enable.serve.arguments import is_number, operand_dtype, tensor_places
from enable.serve.server import Counts, Server
from enable.serve.shortcuts import MISS
from traces.errors import UserError
from traces.overloads import name_of, resolve

# Overloads whose ATen kernels make a tensor on the GPU of a number, mark it as a number and call another overload with
# it (ATen/native: Pow.cpp, TensorCompare.cpp, Bucketization.cpp): no kernel in Python can be given such a tensor.
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
KEYS = {
    "cuda": "CUDA",
    "xpu": "XPU",
    "cpu": "CPU",
}  # dispatch keys by device; of calls with a sparse tensor, Sparse and it


class Registration:
    """What is in force until `undo`. left_out: overloads that have a kernel but were not registered, and why."""

    def __init__(  # noqa: PLR0913 - what is in force, and how to end and resume it
        self,
        device: str,
        server: Server,
        left_out: Mapping[str, str],
        undo: Callable[[], None],
        executor: Any = None,
        again: Callable[[], Callable[[], None]] | None = None,
    ) -> None:
        """executor: what answers calls, where the dispatcher does not know it. again: registers anew after `undo`, and
        returns the next `undo`."""
        self.device = device
        self._server = server
        self.left_out = left_out
        self.executor = executor
        self._undo, self._again = undo, again
        _in_force[device].append(self)

    @property
    def counts(self) -> Counts:
        """What has been served until now, and what not."""
        return self._server.counts

    @property
    def native(self) -> bool:
        """Whether calls that were seen before are answered without Python."""
        return self._server.native is not None

    def undo(self) -> None:
        """Put back what was there before. Undoing twice does nothing.

        Raises UserError while a later registration on the device is in force: it hands on to this one.
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
        """Take the registration away within the block, so that calls run as if it had never been made.

        The same server is registered again at the end, with all that it has learned; that takes some 50 ms. Raises
        UserError if this is not the latest registration on a device of the dispatcher.
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
    """The executor of the latest registration in force on a device, None if there is none."""
    stack = _in_force[device]
    return stack[-1].executor if stack else None


def under_dispatcher(
    server: Server, device: str, overloads: Collection[str], left_out: Mapping[str, str]
) -> Registration:
    """Register a server for these overloads. What it does not serve goes to the kernel that was there before.

    device: cpu, cuda or xpu. Raises UserError for a torch without `torch.library.get_kernel`.
    """
    if not hasattr(torch.library, "get_kernel"):
        raise UserError(f"registration needs torch 2.10 or newer, this is {torch.__version__}; update it")
    again = partial(_put, server, device, overloads)
    return Registration(device, server, left_out, again(), again=again)


def _put(server: Server, device: str, overloads: Collection[str]) -> Callable[[], None]:
    """Register under the dispatcher; returns what undoes it."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    overloads = {*overloads, *_of_numbers(overloads)}
    with ExitStack() as stack, warnings.catch_warnings():
        stack.callback(library._destroy)
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel", UserWarning)
        for overload in overloads:
            for key in _keys(server, overload, KEYS[device]):
                library.impl(  # type: ignore[no-untyped-call]
                    overload.removeprefix("aten::"),
                    _implementation(server, resolve(overload), key),
                    key,
                    allow_override=True,  # of an earlier registration, which this one hands on to
                )
        if server.native is not None:
            ops = [(resolve(o), key) for o in overloads for key in _keys(server, o, KEYS[device])]
            stack.enter_context(server.native.before(ops))
        return stack.pop_all().close


def _keys(server: Server, overload: str, key: str) -> tuple[str, ...]:
    """The dispatch keys under which the overload is served."""
    return (key, f"Sparse{key}") if server.takes_sparse(overload) else (key,)


def _implementation(server: Server, op: OpOverload, key: str) -> Callable[..., Any]:
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
    """Return the overloads of `_OF_NUMBERS` whose ATen kernels call one of these, perhaps the one that takes `out`."""
    packets = {overload.partition(".")[0] for overload in overloads if overload in _CALLED_WITH_NUMBERS}
    return [number for number in _OF_NUMBERS if number.partition(".")[0] in packets]


def form_with_tensor(op: OpOverload, args: tuple[Any, ...]) -> tuple[OpOverload, tuple[Any, ...]] | None:
    """Return the overload of `_OF_NUMBERS` for tensors, and the arguments with a 0-dim tensor for the number."""
    if name_of(op) not in _OF_NUMBERS:
        return None
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    made = [
        torch.scalar_tensor(a, dtype=operand_dtype(a, tensors), device=tensors[0].device) if is_number(a) else a
        for a in args[:2]
    ]
    return resolve(_OF_NUMBERS[name_of(op)]), (*made, *args[2:])


def _without_numbers(op: OpOverload, args: tuple[Any, ...]) -> Iterable[Any]:
    """The arguments with a tensor wherever the schema has one.

    PyTorch hands Python kernels a number for the 0-dim tensor that it made of one, and a native kernel wants it back.
    """
    numbers = [i for i in tensor_places(op) if i < len(args) and is_number(args[i])]
    if not numbers:
        return args
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    made = {i: torch.scalar_tensor(args[i], dtype=operand_dtype(args[i], tensors)) for i in numbers}
    return [made.get(i, a) for i, a in enumerate(args)]


def _kernel(op: OpOverload, key: str) -> Callable[..., Any] | None:
    """Return the kernel that PyTorch would run for the operator under this key, None if it has none."""
    try:
        native = torch.library.get_kernel(op, key)
    except RuntimeError:
        return None
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))  # handing on those of each call costs 1 us
    return lambda *args, **kwargs: native.call_boxed(keys, *_without_numbers(op, args), **kwargs)
