"""Pixel shuffle between planes [..., r, r, rows, columns] and images [..., rows, r, columns, r]."""

import triton
import triton.language as tl
from blocks.offsets import plain, plain_value, sixteenths

# Elements of the smallest plane. A program moves lines from R planes, so with R = 2 each of its 128 threads gets
# four elements.
SMALLEST_PLANE = 256

LARGEST_IMAGE = 2**30  # elements; offsets are int32, and lanes beyond the last line and column need room


@triton.jit
def pixel_shuffle_kernel(
    x_ptr,
    out_ptr,
    rows,
    columns,
    EVEN: tl.constexpr,
    R: tl.constexpr,
    BACK: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_W: tl.constexpr,
):
    """Copy planes to images, or images to planes if BACK is set.

    Each program moves lines in one image, BLOCK_H out of every R, which come from R planes.

    Args:
        x_ptr: contiguous planes [images, R, R, rows, columns], or images [images, rows, R, columns, R] if BACK, read.
        out_ptr: the same elements in the other layout, written.
        rows: lines per plane, encoded by `plain`.
        columns: elements per line in a plane, encoded by `plain`.
        EVEN: 16 divides the columns.
        R: factor by which an image is larger than a plane, along each axis: 2, 4 or 8.
        BACK: True to copy images to planes.
        BLOCK_H: lines per plane in a tile.
        BLOCK_W: columns per plane in a tile.
    """
    rows, columns = plain_value(rows), sixteenths(plain_value(columns), EVEN)
    tile, across, down = tl.program_id(0), tl.cdiv(columns, BLOCK_W), tl.cdiv(rows, BLOCK_H)
    start = tile % across * BLOCK_W
    h = tile // across % down * BLOCK_H + tl.arange(0, BLOCK_H)
    planes = tile // (across * down)
    i = planes % R
    # int64 only for the image's start; `shuffle_pixels` limits an image to int32 offsets
    first = (planes // R).to(tl.int64) * (R * R) * rows * columns
    j, w = tl.arange(0, R), start + tl.arange(0, BLOCK_W)
    u = start * R + tl.arange(0, BLOCK_W * R)
    plane = ((i * R + j)[:, None, None] * rows + h[None, :, None]) * columns + w[None, None, :]
    in_plane = (h < rows)[None, :, None] & (w < columns)[None, None, :] & (j < R)[:, None, None]
    image = ((h * R + i) * (columns * R))[:, None] + u[None, :]
    in_image = (h < rows)[:, None] & (u < columns * R)[None, :]
    # the transposition happens in registers, so loads and stores both run along contiguous lines
    if BACK:
        x = tl.reshape(tl.load(x_ptr + (first + image), mask=in_image), [BLOCK_H, BLOCK_W, R])
        tl.store(out_ptr + (first + plane), tl.permute(x, (2, 0, 1)), mask=in_plane)
    else:
        x = tl.permute(tl.load(x_ptr + (first + plane), mask=in_plane), (1, 2, 0))
        tl.store(out_ptr + (first + image), tl.reshape(x, [BLOCK_H, BLOCK_W * R]), mask=in_image)


def shuffle_pixels(x, out, rows, columns, r, back):
    """Fill `out` and return True, or return False if the kernel does not serve the tensors.

    Both tensors must be dense, r must be 2, 4 or 8, and a plane must have at least 256 elements. An image may
    have at most 2^30 elements, because offsets in it are int32. `rows` and `columns` are the plane size.
    """
    if r not in (2, 4, 8) or not (x.is_contiguous() and out.is_contiguous()):
        return False
    if rows * columns < SMALLEST_PLANE or r * r * rows * columns > LARGEST_IMAGE:
        return False
    BLOCK_W = min(triton.next_power_of_2(columns), 512 // r)
    BLOCK_H = min(triton.next_power_of_2(rows), max(4096 // (BLOCK_W * r), 1))
    lines = x.numel() // (r * rows * columns)
    pixel_shuffle_kernel[(lines * triton.cdiv(rows, BLOCK_H) * triton.cdiv(columns, BLOCK_W),)](
        x,
        out,
        plain(rows),
        plain(columns),
        EVEN=columns % 16 == 0,
        R=r,
        BACK=back,
        BLOCK_H=BLOCK_H,
        BLOCK_W=BLOCK_W,
        num_warps=4,
    )
    return True
