"""The factories of tensors that the device `sim` has to register, because PyTorch lacks or composes them for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch._ops import OpOverload

from traces.overloads import resolve

_OF_ANY_DEVICE = ("CompositeExplicitAutograd", "CPU")  # dispatch keys of factories that are not specific to one backend


def factories() -> Iterator[OpOverload]:
    """Yield overloads that create a tensor from no other. PyTorch lacks or composes them for an unknown device."""
    for name in torch._C._dispatch_get_all_op_names():
        public = name.startswith("aten::") and not name.startswith("aten::_") and "sparse" not in name
        if public and any(map(partial(torch._C._dispatch_has_kernel_for_dispatch_key, name), _OF_ANY_DEVICE)):
            op = resolve(name)
            arguments = {a.name: str(a.type) for a in op._schema.arguments}
            if "device" in arguments and not any("Tensor" in text for text in arguments.values()):
                yield op
