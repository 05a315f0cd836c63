"""aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor

Each element sums the gradients from all windows that contain it, without atomics.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.limits import INT32_MAX, SMALL_TENSOR
from blocks.offsets import integer, integer_value, strided, walk
from blocks.tuning import tuned
from blocks.types import compute_types, convert

OVERLOADS = ("aten::unfold_backward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
SPACE = (("BLOCK", (128, 256, 512, 1024)), ("WARPS", (4, 8)))
TUNED = (("", 0, 1024, 4),)

LARGEST_BLOCK = 1024  # elements by which the last block may almost pass the end


@triton.jit
def unfold_backward_kernel(
    grad_ptr,
    out_ptr,
    n,
    inner,
    length,
    windows,
    size,
    step,
    window_stride,
    place_stride,
    outer_steps,
    inner_steps,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute BLOCK elements per program instance.

    Args:
        grad_ptr: [outer, windows, inner, size], read.
        out_ptr: [outer, length, inner], contiguous, written.
        n: Number of elements in the output.
        inner: Number of elements per position along the unfolded dimension.
        length: Size of the unfolded dimension.
        windows: Number of windows.
        size: Window size.
        step: Distance between the begins of neighboring windows.
        window_stride: Stride of the gradient between windows.
        place_stride: Stride of the gradient between positions in a window.
        outer_steps: (shape, strides) of the gradient's dimensions before the windows, from `walk`.
        inner_steps: (shape, strides) of the gradient's dimensions between windows and positions, from `walk`.
        OPMATH: Triton type of the sums.
        WIDE: Compute offsets in 64 bits.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK: Elements per program instance.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    mask = i < integer_value(n, PLAIN)
    inner, length = integer_value(inner, PLAIN), integer_value(length, PLAIN)
    size, step = integer_value(size, PLAIN), integer_value(step, PLAIN)
    at = i // inner % length
    grad_ptr += strided(i // inner // length, outer_steps[0], outer_steps[1][0], False, PLAIN)
    grad_ptr += strided(i % inner, inner_steps[0], inner_steps[1][0], False, PLAIN)
    total = tl.zeros([BLOCK], OPMATH)
    for k in range(tl.cdiv(size, step)):  # at most this many windows contain an element
        window = at // step - k
        in_window = at - window * step
        valid = mask & (window >= 0) & (window < integer_value(windows, PLAIN)) & (in_window < size)
        offset = window * integer_value(window_stride, PLAIN) + in_window * integer_value(place_stride, PLAIN)
        total += tl.load(grad_ptr + offset, mask=valid, other=0).to(OPMATH)
    tl.store(out_ptr + i, convert(total, out_ptr.dtype.element_ty), mask=mask)


def wrapper(grad_in, input_sizes, dim, size, step):
    out = torch.empty(input_sizes, dtype=grad_in.dtype, device=grad_in.device)
    if not out.numel():
        return out
    grad, sizes = (grad_in, out.shape) if out.dim() else (grad_in.unsqueeze(0), (1,))
    dim = dim % len(sizes)
    expected = (*sizes[:dim], max(sizes[dim] - size, 0) // step + 1, *sizes[dim + 1 :], size)
    if grad.shape != expected or size > sizes[dim]:
        raise RuntimeError(
            f"gradient {tuple(grad_in.shape)} does not fit windows with {size} elements in {tuple(sizes)}"
        )
    n, PLAIN = out.numel(), max(out.numel(), grad.numel()) < SMALL_TENSOR
    extent = sum([(k - 1) * s for k, s in zip(grad.shape, grad.stride(), strict=True)])
    BLOCK, warps = tuned(TUNED, grad.shape, out.shape)
    unfold_backward_kernel[(triton.cdiv(n, BLOCK),)](
        grad,
        out,
        integer(n, PLAIN),
        integer(math.prod(sizes[dim + 1 :]), PLAIN),
        integer(sizes[dim], PLAIN),
        integer(grad.shape[dim], PLAIN),
        integer(size, PLAIN),
        integer(step, PLAIN),
        integer(grad.stride(dim), PLAIN),
        integer(grad.stride(-1), PLAIN),
        walk([grad], range(dim), PLAIN),
        walk([grad], range(dim + 1, len(sizes)), PLAIN),
        OPMATH=compute_types(out.dtype)[1],
        WIDE=max(n, extent) > INT32_MAX - LARGEST_BLOCK,
        PLAIN=PLAIN,
        BLOCK=BLOCK,
        num_warps=warps,
    )
    return out
