"""Attribution of operator calls to modules, in forward and in backward."""

from __future__ import annotations

import sys
import threading
import warnings
from bisect import bisect_right
from contextlib import suppress
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

MAX_TRANSITIONS = 1 << 16  # module changes that are remembered for backward


class ModuleTracker:
    """Follows module calls through global forward hooks, or through Python frames if the hooks are not installed.

    Names are relative to `model`. Modules outside it are named after the outermost one's class. In backward, the
    sequence number of an autograd node tells when it was created in forward, and therefore in which module.
    """

    def __init__(self, model: nn.Module | None) -> None:
        self._names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        if model is not None:
            for name, module in model.named_modules():
                with suppress(TypeError):  # a module that defines equality has no hash
                    self._names[module] = name
        self._stacks: dict[int, list[str]] = {}  # of module names, by thread
        self._home = threading.get_ident()  # sequence numbers are per thread; only those of this thread are recorded
        self._numbers: list[int] = []  # at these autograd sequence numbers ...
        self._current: list[str] = []  # ... these modules became current
        self._hooks: list[Any] = []

    def start(self) -> None:
        """Install the hooks if they are not installed."""
        if not self._hooks:
            # Compiled modules warn about these hooks. That does not matter: nothing is compiled while recording.
            warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global hooks", UserWarning)
            self._hooks = [
                register_module_forward_pre_hook(self._enter),
                register_module_forward_hook(self._leave, always_call=True),
            ]

    def stop(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._stacks.clear()

    def current(self) -> str:
        """Return the module name for the call being dispatched; empty outside all modules."""
        stack = self._stacks.get(threading.get_ident()) if self._hooks else self._from_frames()
        if stack:  # also in backward, because checkpointing runs modules again
            return stack[-1]
        node = torch._C._current_autograd_node()
        return "" if node is None else self._made_in(node._sequence_nr())

    def _from_frames(self) -> list[str]:
        modules = list[nn.Module]()
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code is nn.Module._call_impl.__code__:
                modules.append(frame.f_locals["self"])
            frame = frame.f_back
        names = list[str]()
        for module in reversed(modules):
            names.append(self._name_of(module, names))
        return names

    def _made_in(self, number: int) -> str:
        if not self._numbers or number > torch.iinfo(torch.int64).max:  # AccumulateGrad has the number 2**64 - 1
            return ""
        position = bisect_right(self._numbers, number) - 1
        return self._current[position] if position >= 0 else ""

    def _enter(self, module: nn.Module, args: Any) -> None:
        stack = self._stacks.setdefault(threading.get_ident(), [])
        stack.append(self._name_of(module, stack))
        self._note(stack)

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        stack = self._stacks.get(threading.get_ident())
        if stack:
            stack.pop()
            self._note(stack)

    def _name_of(self, module: nn.Module, stack: list[str]) -> str:
        """Return the module's name, given that the last module on the stack calls it."""
        root = ".".join(filter(None, (*stack[-1:], type(module).__name__)))
        try:
            if module not in self._names:
                for name, child in module.named_modules(prefix=root):
                    self._names.setdefault(child, name)
            return self._names[module]
        except Exception:  # noqa: BLE001 - a module may override attributes or have no hash; its class names it
            return root

    def _note(self, stack: list[str]) -> None:
        if threading.get_ident() != self._home:
            return
        self._numbers.append(torch._C._autograd._get_sequence_nr())
        self._current.append(stack[-1] if stack else "")
        if len(self._numbers) > MAX_TRANSITIONS:
            del self._numbers[: MAX_TRANSITIONS // 2], self._current[: MAX_TRANSITIONS // 2]
