"""aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor

For each pixel or voxel, the result is theta [N, d, d + 1] @ (x, y, [z,] 1). The coordinates are in [-1, 1],
and the last image dimension comes first.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import plain, plain_value
from blocks.tuning import tuned

OVERLOADS = ("aten::affine_grid_generator",)
DTYPES = ("bfloat16", "float16", "float32", "float64")
SPACE = (("BLOCK", (128, 256, 512, 1024, 2048)), ("WARPS", (4, 8)))
TUNED = (
    ("", 0, 1024, 4),
    ("sm_90", 1024, 128, 4),
    ("sm_90", 65536, 256, 8),
    ("sm_90", 524288, 256, 4),
    ("sm_90", 2097152, 1024, 4),
)


@triton.jit
def pixel_place(i, n, ALIGN: tl.constexpr, OPMATH: tl.constexpr):
    """Return the coordinate of pixel i among n pixels, or 0 if n == 1.

    With ALIGN, -1 and 1 are the centers of the first and last pixels. Otherwise they are the outer edges of
    these pixels.
    """
    steps = (tl.maximum(n, 2) - 1).to(OPMATH)
    at = tl.where(n > 1, (2 * i - (n - 1)).to(OPMATH) / steps, 0)
    return at if ALIGN else at * (n - 1).to(OPMATH) / n.to(OPMATH)


@triton.jit
def affine_kernel(theta_ptr, out_ptr, sizes, strides, DIMS: tl.constexpr, ALIGN: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the grid coordinates for BLOCK pixels per program instance.

    Args:
        theta_ptr: [N, DIMS, DIMS + 1], read.
        out_ptr: [N, (depth,) height, width, DIMS], contiguous, written.
        sizes: (N, depth, height, width), encoded by `plain`; depth is 1 for images.
        strides: The three strides of theta, encoded by `plain`.
        DIMS: 2 for images, 3 for volumes.
        ALIGN: True if -1 and 1 are the centers of the outer pixels, False if they are their outer edges.
        BLOCK: Pixels per program instance.
    """
    OPMATH: tl.constexpr = tl.float64 if out_ptr.dtype.element_ty == tl.float64 else tl.float32
    depth, height, width = plain_value(sizes[1]), plain_value(sizes[2]), plain_value(sizes[3])
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(sizes[0]).to(tl.int64) * depth * height * width
    x = pixel_place(i % width, width, ALIGN, OPMATH)
    y = pixel_place(i // width % height, height, ALIGN, OPMATH)
    z = pixel_place(i // width // height % depth, depth, ALIGN, OPMATH)
    theta_ptr += i // width // height // depth * plain_value(strides[0])
    for row in tl.static_range(DIMS):
        row_ptr = theta_ptr + row * plain_value(strides[1])
        step = plain_value(strides[2])
        total = tl.load(row_ptr, mask=mask, other=0).to(OPMATH) * x
        total += tl.load(row_ptr + step, mask=mask, other=0).to(OPMATH) * y
        if DIMS == 3:
            total += tl.load(row_ptr + 2 * step, mask=mask, other=0).to(OPMATH) * z
        total += tl.load(row_ptr + DIMS * step, mask=mask, other=0).to(OPMATH)
        tl.store(out_ptr + i * DIMS + row, total.to(out_ptr.dtype.element_ty), mask=mask)


def wrapper(theta, size, align_corners):
    dims = len(size) - 2
    if not theta.is_floating_point():
        raise RuntimeError(f"theta must be floating point, got {theta.dtype}")
    if dims not in (2, 3) or tuple(theta.shape) != (size[0], dims, dims + 1):
        raise RuntimeError(f"theta {tuple(theta.shape)} does not fit size {tuple(size)}")
    out = torch.empty((size[0], *size[2:], dims), dtype=theta.dtype, device=theta.device)
    if out.numel():
        sizes = (size[0], *(1,) * (3 - dims), *size[2:])
        BLOCK, warps = tuned(TUNED, theta.shape, out.shape)
        affine_kernel[(triton.cdiv(out.numel() // dims, BLOCK),)](
            theta,
            out,
            tuple([plain(n) for n in sizes]),
            tuple([plain(s) for s in theta.stride()]),
            DIMS=dims,
            ALIGN=align_corners,
            BLOCK=BLOCK,
            num_warps=warps,
        )
    return out
