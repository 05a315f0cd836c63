"""aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device?
    device=None, bool? pin_memory=None) -> Tensor
aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor
aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor
aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor

The first half is computed from `start` and the second half from `end`, in fp32. It is in fp64 for fp64 and
integer results; for integers, both ends are truncated first.
"""

import torch
from blocks.creation import fill
from blocks.elementwise import elementwise, flat_index
from blocks.lines import line, whole_line

OVERLOADS = (
    "aten::linspace",
    "aten::linspace.Tensor_Tensor",
    "aten::linspace.Tensor_Scalar",
    "aten::linspace.Scalar_Tensor",
)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(start, end, steps, *, dtype=None, layout=None, device=None, pin_memory=None):
    if steps < 0 or any([isinstance(x, torch.Tensor) and x.dim() for x in (start, end)]):
        raise RuntimeError(f"steps must be >= 0 and the ends numbers, got {steps} steps")
    tensors = [x for x in (start, end) if isinstance(x, torch.Tensor)]
    device = tensors[0].device if tensors else device
    out = torch.empty(steps, dtype=dtype or torch.get_default_dtype(), device=device)
    if steps == 1:
        return fill(out, start)
    is_integer = not out.is_floating_point()
    common = torch.float64 if is_integer or out.dtype == torch.float64 else torch.float32
    numbers = max(steps - 1, 1), max(steps // 2, 1)
    function = whole_line if is_integer else line
    return elementwise(function, start, end, numbers=numbers, source=(flat_index,), common=common, out=out)
