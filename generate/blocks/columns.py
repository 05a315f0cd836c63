"""Image windows as columns (im2col), and the inverse sum (col2im)."""

import torch
import triton
import triton.language as tl
from blocks.limits import INT32_MAX
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.windows import windows


@triton.jit
def columns_kernel_of(x_ptr, out_ptr, n, sizes, strides, steps, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Copy each element of each window to its column, with 0 for padding.

    Args:
        x_ptr: [N, C, H, W], read with `strides`.
        out_ptr: Contiguous [N, C, KH, KW, LH, LW], written.
        n: Number of result elements, encoded by `plain`.
        sizes: Shape of the result, encoded by `plain`.
        strides: Strides of x, encoded by `plain`.
        steps: Stride, padding, dilation and input size of each axis, encoded by `plain`.
        WIDE: Use 64-bit offsets.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK + tl.arange(0, BLOCK)
    flat, n = i, plain_value(n)
    sizes, strides, steps = integer_values(sizes, True), integer_values(strides, True), integer_values(steps, True)
    left = i % sizes[5]
    i = i // sizes[5]
    top = i % sizes[4]
    i = i // sizes[4]
    col = i % sizes[3]
    i = i // sizes[3]
    row = i % sizes[2]
    i = i // sizes[2]
    y = top * steps[0] - steps[1] + row * steps[2]
    x = left * steps[4] - steps[5] + col * steps[6]
    inside = (flat < n) & (y >= 0) & (y < steps[3]) & (x >= 0) & (x < steps[7])
    offset = i // sizes[1] * strides[0] + i % sizes[1] * strides[1] + y * strides[2] + x * strides[3]
    tl.store(out_ptr + flat, tl.load(x_ptr + offset, mask=inside, other=0), mask=flat < n)


@triton.jit
def column_back(i, t, a, f):
    """Return the offset of pixel i under tap t in the columns, weight 1, and a validity mask, for `windows`.

    The offset is the window's position times its stride, plus the tap times its stride. The integers `a` are
    stride, padding, dilation, window count, window stride, and tap stride.
    """
    at = i + a[1] - t * a[2]
    window = tl.where(at < 0, 0, at) // a[0]
    return window * a[4] + t * a[5], 1, (at >= 0) & (window * a[0] == at) & (window < a[3])


def window_counts(size, kernel_size, dilation, padding, stride):
    """Return the window count along each axis; raise RuntimeError as ATen does for invalid arguments."""
    if any([len(v) != 2 for v in (size, kernel_size, dilation, padding, stride)]):
        raise RuntimeError(
            f"each window setting needs two integers, and size too, got {tuple(size)} and {tuple(kernel_size)}"
        )
    if min(*kernel_size, *dilation, *stride) < 1 or min(padding) < 0 or min(size) < 1:
        raise RuntimeError(
            f"invalid windows: kernel {tuple(kernel_size)}, dilation {dilation}, padding {padding}, stride {stride}"
        )
    axes = zip(size, kernel_size, dilation, padding, stride, strict=True)
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in axes]
    if min(counts) < 1:
        raise RuntimeError(f"windows {tuple(kernel_size)} do not fit in {tuple(size)}")
    return counts


def to_columns(x, kernel_size, dilation, padding, stride):
    """Return the columns [N, C * KH * KW, LH * LW] of images [N, C, H, W]; N may be missing in both."""
    if x.dim() not in (3, 4) or 0 in x.shape[x.dim() - 3 :]:
        raise RuntimeError(f"expected [C, H, W] or [N, C, H, W] without empty dimensions, got {tuple(x.shape)}")
    counts = window_counts(x.shape[-2:], kernel_size, dilation, padding, stride)
    image = x if x.dim() == 4 else x.unsqueeze(0)
    N, C, H, W = image.shape
    out = torch.empty((N, C * kernel_size[0] * kernel_size[1], counts[0] * counts[1]), dtype=x.dtype, device=x.device)
    steps = [(stride[k], padding[k], dilation[k], (H, W)[k]) for k in range(2)]
    n = out.numel()
    if n:
        columns_kernel_of[(triton.cdiv(n, 1024),)](
            image,
            out,
            plain(n),
            integers((N, C, *kernel_size, *counts), True),
            integers(image.stride(), True),
            integers((*steps[0], *steps[1]), True),
            WIDE=max(n, reach(image.shape, [image.stride()])) > INT32_MAX - 1024,  # the last block reaches beyond n
            BLOCK=1024,
        )
    return out if x.dim() == 4 else out.squeeze(0)


def from_columns(x, output_size, kernel_size, dilation, padding, stride):
    """Return images [N, C, H, W] that sum the columns [N, C * KH * KW, LH * LW]; N may be missing in both."""
    counts = window_counts(output_size, kernel_size, dilation, padding, stride)
    columns = x if x.dim() == 3 else x.unsqueeze(0)
    taps = kernel_size[0] * kernel_size[1]
    if x.dim() not in (2, 3) or 0 in x.shape[x.dim() - 2 :]:
        raise RuntimeError(
            f"expected columns [C * taps, L] or [N, C * taps, L] without empty dimensions, got {tuple(x.shape)}"
        )
    if columns.shape[1] % taps or columns.shape[2] != counts[0] * counts[1]:
        raise RuntimeError(f"columns {tuple(x.shape)} do not fit {counts} windows {tuple(kernel_size)}")
    N, C = columns.shape[0], columns.shape[1] // taps
    out = torch.empty((N, C, *output_size), dtype=x.dtype, device=x.device)
    batch, tap, window = columns.stride()
    across = (tap * kernel_size[1], tap), (window * counts[1], window)
    axes = [((stride[k], padding[k], dilation[k], counts[k], across[1][k], across[0][k]), ()) for k in range(2)]
    image = columns.as_strided((N, C, 1, 1), (batch, tap * taps, 1, 1))
    windows(column_back, "sum", image, out, axes, list(kernel_size))
    return out if x.dim() == 3 else out.squeeze(0)
