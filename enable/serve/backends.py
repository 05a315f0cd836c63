"""The PyTorch device types that kernels serve, and how kernels run on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from capture.out_of_tree import prepare

# Functions that make and read the parts of sparse tensors. PyTorch's are for any device, but it does not register them
# for devices outside its tree, and sparse gradients need them.
_SPARSE = (
    *("_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors", "_coalesced_", "is_coalesced"),
    *("_indices", "indices", "_values", "values", "_nnz", "sparse_dim", "dense_dim", "_dimI", "_dimV"),
    *("sparse_resize_", "sparse_resize_and_clear_", "copy_sparse_to_sparse_"),
)
_libraries: list[torch.library.Library] = []  # in force until the process ends


@dataclass(frozen=True)
class Backend:
    """How kernels reach a device type.

    Attributes:
        key: Dispatch key under which kernels are registered; sparse calls use this name with the prefix "Sparse".
        interpreted: Run kernels in Triton's interpreter, which copies the memory of a device other than the CPU to the
            host and back for each launch.
        options: Options of a launch that does not state them itself, such as num_warps.
    """

    key: str
    interpreted: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


BACKENDS = {"cuda": Backend("CUDA"), "xpu": Backend("XPU"), "cpu": Backend("CPU", interpreted=True)}


def declare(device: str, backend: Backend) -> None:
    """Add the device type of a chip that is not in PyTorch's tree. PyTorch has room for one in each process."""
    is_new = device not in BACKENDS
    BACKENDS[device] = backend
    if not is_new:
        return  # each registration brings the device up again
    prepare()
    module = torch.get_device_module(device)
    if not hasattr(module, "_initialized"):  # else torch.utils.checkpoint does not keep the device's generator
        module._initialized = True
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    key, has_kernel = f"Sparse{backend.key}", torch._C._dispatch_has_kernel_for_dispatch_key
    for name in _SPARSE:
        if has_kernel(f"aten::{name}", "SparseCPU") and not has_kernel(f"aten::{name}", key):
            library.impl(name, _of_cpu(name), key)  # type: ignore[no-untyped-call]
    _libraries.append(library)


def _of_cpu(name: str) -> Callable[..., Any]:
    """Return PyTorch's kernel for sparse tensors on the CPU."""
    kernel = torch.library.get_kernel(f"aten::{name}", "SparseCPU")
    return partial(kernel.call_boxed, torch._C.DispatchKeySet(torch._C.DispatchKey.SparseCPU))
