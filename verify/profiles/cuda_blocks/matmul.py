"""Matrix products through tensor descriptors: one persistent program per multiprocessor goes from tile to tile.

The memory system itself loads a tile that has a descriptor (TMA, from sm_90 on; elsewhere Triton generates
plain loads). The next tile's operands load while the last tile is stored. This block replaces the library's
block with the same name.
"""

import torch
import triton
import triton.language as tl
from blocks.alternating import LONG_SUM, alternates, launch_alternating
from blocks.limits import PROCESSORS
from blocks.long_sums import shares_serve, sum_shares, worth
from blocks.matmul import NO_ENDING, add_up_parts, launch_tiles, plain_part_sums
from blocks.product_tiles import plus_bias
from blocks.tuning import TUNING_TARGET
from blocks.types import number_argument

HIGH_TILES = ("sm_90", "sm_100")  # these have enough shared memory for tiles with 256 rows
SHARED_BYTES = 230000  # shared memory in bytes that tiles may use; a program on sm_90 has 232,448
FULL_TILE = 128 * 128  # elements of the library's largest tile
TWO_STAGES = 2**16  # bytes of two stages for such a tile, each with 64 columns from a and rows from b
PART_COLUMNS = 512  # fewest columns of a per part, because a part's sum has to be stored and added up


@triton.jit
def tile_in_order(tile, down, across):
    """Return row and column for a tile, grouping eight rows of tiles so that shared operands are still cached."""
    group = tile // (8 * across)
    height = tl.minimum(down - group * 8, 8)
    inside = tile % (8 * across)
    return group * 8 + inside % height, inside // height


@triton.jit
def operand_rows(a_ptr, b_ptr, sizes, strides, TILE: tl.constexpr, TURNED: tl.constexpr):
    """Return descriptors for a and b with their tile shapes."""
    M, N, K = sizes
    if TURNED[0]:
        a_rows = tl.make_tensor_descriptor(a_ptr, [K, M], [strides[0], 1], [TILE[2], TILE[0]])
    else:
        a_rows = tl.make_tensor_descriptor(a_ptr, [M, K], [strides[0], 1], [TILE[0], TILE[2]])
    if TURNED[1]:
        b_rows = tl.make_tensor_descriptor(b_ptr, [N, K], [strides[1], 1], [TILE[1], TILE[2]])
    else:
        b_rows = tl.make_tensor_descriptor(b_ptr, [K, N], [strides[1], 1], [TILE[2], TILE[1]])
    return a_rows, b_rows


@triton.jit
def tile_sum(a_rows, b_rows, row, col, k, acc, TURNED: tl.constexpr):
    """Return acc plus the product of the tiles in a and b that begin at row, col and k."""
    a = a_rows.load([k, row]).T if TURNED[0] else a_rows.load([row, k])
    b = b_rows.load([col, k]).T if TURNED[1] else b_rows.load([k, col])
    return tl.dot(a, b, acc)


@triton.jit
def descriptor_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    ending,
    sizes,
    strides,
    numbers,
    TILE: tl.constexpr,
    TURNED: tl.constexpr,
    PROGRAMS: tl.constexpr,
    HALVES: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """Compute every PROGRAMS-th tile of beta * bias + alpha * a @ b, starting with the program's own index.

    Args:
        a_ptr: [M, K], read.
        b_ptr: [K, N], read.
        bias_ptr: Bias for the columns, [N], read, or None.
        out_ptr: [M, N], contiguous, written.
        ending: Pointers to x, y (read) and a second result (written), each [M, N] or None, for EPILOGUE.
        sizes: (M, N, K).
        strides: Strides of a's rows (TURNED: columns), b's rows (TURNED: columns), and bias.
        numbers: (beta, alpha), encoded by `number_argument`.
        TILE: (BLOCK_M, BLOCK_N, BLOCK_K).
        TURNED: For a and b, True if the matrix is stored by columns.
        PROGRAMS: Distance between the tiles of one program.
        HALVES: Without an epilogue, store a tile's columns as two halves, one after the other, which needs half
            the shared memory.
        EPILOGUE: Function (acc, x, y) -> (first, second), or None.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_K: tl.constexpr = TILE[2]
    M, N, K = sizes
    a_rows, b_rows = operand_rows(a_ptr, b_ptr, sizes, strides, TILE, TURNED)
    wide = tl.full([], N, tl.int64)
    WIDTH: tl.constexpr = BLOCK_N // 2 if HALVES else BLOCK_N
    out_rows = tl.make_tensor_descriptor(out_ptr, [M, N], [wide, 1], [BLOCK_M, WIDTH])
    x_ptr, y_ptr, second_ptr = ending
    if x_ptr is not None:
        x_rows = tl.make_tensor_descriptor(x_ptr, [M, N], [wide, 1], [BLOCK_M, BLOCK_N])
    if y_ptr is not None:
        y_rows = tl.make_tensor_descriptor(y_ptr, [M, N], [wide, 1], [BLOCK_M, BLOCK_N])
    if second_ptr is not None:
        second_rows = tl.make_tensor_descriptor(second_ptr, [M, N], [wide, 1], [BLOCK_M, BLOCK_N])
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(tl.program_id(0), down * across, PROGRAMS, flatten=True):
        row, col = tile_in_order(tile, down, across)
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for step in range(steps):
            acc = tile_sum(a_rows, b_rows, row * BLOCK_M, col * BLOCK_N, step * BLOCK_K, acc, TURNED)
        cols = (col * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
        acc = plus_bias(acc, bias_ptr, cols * 0, cols, (0, 0, strides[2]), cols < N, numbers)
        if HALVES:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BLOCK_M, 2, WIDTH)), (0, 2, 1)))
            out_rows.store([row * BLOCK_M, col * BLOCK_N], left.to(out_ptr.dtype.element_ty))
            out_rows.store([row * BLOCK_M, col * BLOCK_N + WIDTH], right.to(out_ptr.dtype.element_ty))
        elif EPILOGUE is None:
            out_rows.store([row * BLOCK_M, col * BLOCK_N], acc.to(out_ptr.dtype.element_ty))
        else:
            x = 0.0 if x_ptr is None else x_rows.load([row * BLOCK_M, col * BLOCK_N])
            y = 0.0 if y_ptr is None else y_rows.load([row * BLOCK_M, col * BLOCK_N])
            first, second = EPILOGUE(acc, x, y)
            out_rows.store([row * BLOCK_M, col * BLOCK_N], first.to(out_ptr.dtype.element_ty))
            if second_ptr is not None:
                second_rows.store([row * BLOCK_M, col * BLOCK_N], second.to(second_ptr.dtype.element_ty))


@triton.jit
def part_of_tile(
    a_ptr, b_ptr, sums_ptr, sizes, strides, tile, begin, first, end, TILE: tl.constexpr, TURNED: tl.constexpr
):
    """Compute one tile of a[:, first:end] @ b[first:end, :] into sums [M, N], counting tiles from column `begin`."""
    M, N, K = sizes
    a_rows, b_rows = operand_rows(a_ptr, b_ptr, sizes, strides, TILE, TURNED)
    down = tl.cdiv(M, TILE[0])
    row, col = tile % down * TILE[0], begin + tile // down * TILE[1]
    acc = tl.zeros([TILE[0], TILE[1]], tl.float32)
    for k in range(first, end, TILE[2]):
        acc = tile_sum(a_rows, b_rows, row, col, k, acc, TURNED)
    rows, cols = row + tl.arange(0, TILE[0])[:, None], col + tl.arange(0, TILE[1])[None, :]
    tl.store(sums_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


@triton.jit
def parts_kernel(a_ptr, b_ptr, sums_ptr, sizes, strides, part, WIDE: tl.constexpr, TURNED: tl.constexpr):
    """Compute one tile of a[:, ks] @ b[ks, :] for the ks in part program_id(1).

    Args:
        a_ptr: [M, K], read.
        b_ptr: [K, N], read.
        sums_ptr: [parts, M, N], contiguous, written.
        sizes: (M, N, K).
        strides: Strides between rows in a and b (TURNED: columns).
        part: Length of a part along K.
        WIDE: If True, tiles have 128 x 256 elements, and 256 x 128 in the remaining columns; else all have 256
            x 128.
        TURNED: For a and b, True if the matrix is stored by columns.
    """
    M, N, K = sizes
    first = tl.program_id(1) * part
    end = tl.minimum(first + part, K)
    sums_ptr += tl.program_id(1).to(tl.int64) * M * N
    tile = tl.program_id(0)
    if WIDE:
        wide = tl.cdiv(M, 128) * (N // 256)
        if tile < wide:
            part_of_tile(a_ptr, b_ptr, sums_ptr, sizes, strides, tile, 0, first, end, (128, 256, 64), TURNED)
        else:
            begin = N // 256 * 256
            tile -= wide
            part_of_tile(a_ptr, b_ptr, sums_ptr, sizes, strides, tile, begin, first, end, (256, 128, 64), TURNED)
    else:
        part_of_tile(a_ptr, b_ptr, sums_ptr, sizes, strides, tile, 0, first, end, (256, 128, 64), TURNED)


def described(x):
    """Return True if a tensor descriptor can describe a matrix: rows or columns begin at multiples of 16 bytes."""
    inner, outer = (0, 1) if x.stride(0) == 1 and x.stride(1) != 1 else (1, 0)
    return x.stride(inner) == 1 and x.stride(outer) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def batches_described(*operands):
    """Return True if a tensor descriptor can describe these batches, whose matrices must not be broadcast."""
    return all(
        [described(x.select(0, 0)) and x.stride(0) > 0 and x.stride(0) * x.element_size() % 16 == 0 for x in operands]
    )


def turned(x):
    """Return True if a matrix that a descriptor can describe is stored by columns."""
    return x.stride(0) == 1 and x.stride(1) != 1


def processors():
    """Return the number of multiprocessors on an A100, an H100 or H200, or a B200.

    If the device has more, some are idle; if it has fewer, the programs run in waves.
    """
    return 108 if TUNING_TARGET == "sm_80" else 148 if TUNING_TARGET == "sm_100" else PROCESSORS


def product_strides(a, b):
    """Return the strides between rows in a and b, or between columns if the matrix is stored by columns."""
    return a.stride(1 if turned(a) else 0), b.stride(1 if turned(b) else 0)


def launch_matmul(a, b, bias, out, numbers, tile, ending=NO_ENDING):
    """Compute a matrix product, through descriptors if half precision, layout and size allow it.

    Otherwise the library's kernel runs.
    """
    (M, N), K = out.shape[-2:], a.shape[-1]
    few = tile[0] * tile[1] < FULL_TILE or a.element_size() != 2
    if a.dim() > 2 and not few and bias is None and alternates(a, out, ending) and batches_described(a, b, out):
        launch_alternating(a, b, None, out, numbers)
        return
    far = bias is not None and bias.stride(0) != 0
    # Total bytes per element over all results and epilogue operands.
    size = sum([x.element_size() for x in (out, *ending[1:]) if x is not None])
    if (
        few
        or a.dim() > 2
        or far
        or FULL_TILE * size > SHARED_BYTES - TWO_STAGES
        or not all([described(x) for x in (a, b, out, *ending[1:]) if x is not None])
    ):
        launch_tiles(a, b, bias, out, numbers, tile, 1, triton.cdiv(K, tile[2]) * tile[2], ending)
        return
    if alternates(a, out, ending):
        launch_alternating(a, b, bias, out, numbers)
        return
    beta, alpha = numbers
    BLOCK_M, BLOCK_N, warps, halves = 128, 128, 4, False
    alone = ending[0] is None and out.element_size() == 2
    # Sums pass through shared memory before the bias is added.
    is_held_twice = bias is not None and TUNING_TARGET == "sm_100"
    if alone and K >= LONG_SUM and N % 256 == 0 and not is_held_twice:
        BLOCK_N, warps = 256, 8
    elif alone and N <= 3 * K and 256 * processors() <= M and TUNING_TARGET in HIGH_TILES:
        BLOCK_M, warps, halves = 256, 8, True
    waiting_bytes = BLOCK_M * BLOCK_N * size // (2 if halves else 1)  # bytes that wait to be stored
    # A stage holds 64 columns from a and rows from b, 2 bytes each.
    stages = (SHARED_BYTES - waiting_bytes) // (128 * (BLOCK_M + BLOCK_N))
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    plan = shares_serve((M, N, K), worth((M, N, K), (tiles, BLOCK_M * BLOCK_N), tiles, 1))
    if plan is not None:
        add_up_parts(sum_shares(a, b, out, plan), bias, out, numbers, ending, a.dtype)
        return
    descriptor_kernel[(min(processors(), tiles),)](
        a,
        b,
        bias,
        out,
        ending[1:],
        (M, N, K),
        (*product_strides(a, b), 0 if bias is None else bias.stride(1)),
        (number_argument(beta, a.dtype), number_argument(alpha, a.dtype)),
        TILE=(BLOCK_M, BLOCK_N, 64),
        TURNED=(turned(a), turned(b)),
        PROGRAMS=processors(),
        HALVES=halves,
        EPILOGUE=ending[0],
        num_warps=warps,
        num_stages=min(stages, 4 if ending[0] is None else 3),
    )


def part_sums(a, b, out, tile, parts, part):
    """Return partial sums for a @ b, by the fastest way that supports the operands.

    The grouped kernel in `long_sums.py` runs if its estimated worth is higher. Otherwise one program per
    multiprocessor computes tiles with 256 rows or columns, if M or N is a multiple of 256, or if N is a
    multiple of 128 and both are large: this is 1.1 times as fast for 1,152 x 384, but was 0.77 times as fast
    for 384 x 384.
    """
    (M, N), K = out.shape, a.shape[1]
    if tile[0] * tile[1] != FULL_TILE or a.element_size() != 2 or not (described(a) and described(b)):
        return plain_part_sums(a, b, out, tile, parts, part)
    sizes = M, N, K
    even = M % 256 == 0 or N % 256 == 0 or (N % 128 == 0 and min(M, N) >= 256 and max(M, N) >= 512)
    wide = M % 256 > 0
    if even:
        remaining = N % 256 if wide else N
        tiles = triton.cdiv(M, 128) * (N // 256 if wide else 0) + triton.cdiv(M, 256) * triton.cdiv(remaining, 128)
        part = triton.cdiv(triton.cdiv(K, max(min(processors() // tiles, K // PART_COLUMNS), 1)), 64) * 64
        parts = triton.cdiv(K, part)
        otherwise = worth(sizes, (tiles, 256 * 128), tiles * parts, parts)
    else:
        tiles = triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1])
        otherwise = worth(sizes, (tiles, FULL_TILE), triton.cdiv(tiles * parts, 2), parts)
    plan = shares_serve(sizes, otherwise)
    if plan is not None:
        return sum_shares(a, b, out, plan)
    if not even:
        return plain_part_sums(a, b, out, tile, parts, part)
    sums = torch.empty((parts, M, N), dtype=torch.float32, device=out.device)
    parts_kernel[(tiles, parts)](
        a,
        b,
        sums,
        sizes,
        product_strides(a, b),
        part,
        WIDE=wide,
        TURNED=(turned(a), turned(b)),
        num_warps=8,
        num_stages=4,
    )
    return sums
