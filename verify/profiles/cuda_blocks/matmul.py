"""Products of matrices through tensor descriptors: a program a processor, which goes from tile to tile.

What a descriptor tells is loaded by the memory system itself (TMA, from sm_90 on; Triton makes plain loads of it
elsewhere), and the next tile's operands are on their way while the last tile is stored.
"""

import triton
import triton.language as tl
from blocks.matmul import NO_ENDING, launch_tiles, plus_bias
from blocks.types import number_argument

PROCESSORS = 132  # of an H100 or H200; with more or fewer there are idle ones, or waves
SHARED = 230000  # bytes of shared memory that tiles may take; of the 232,448 of a program on sm_90


@triton.jit
def tile_place(tile, down, across):
    """Row and column of a tile: eight rows of tiles together, so that what they share is still at hand."""
    group = tile // (8 * across)
    height = tl.minimum(down - group * 8, 8)
    inside = tile % (8 * across)
    return group * 8 + inside % height, inside // height


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
    EPILOGUE: tl.constexpr,
):
    """Every PROGRAMS-th tile of beta * bias + alpha * a @ b from its own on. TURNED: which of a, b lie by columns."""
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_K: tl.constexpr = TILE[2]
    M, N, K = sizes
    if TURNED[0]:
        a_rows = tl.make_tensor_descriptor(a_ptr, [K, M], [strides[0], 1], [BLOCK_K, BLOCK_M])
    else:
        a_rows = tl.make_tensor_descriptor(a_ptr, [M, K], [strides[0], 1], [BLOCK_M, BLOCK_K])
    if TURNED[1]:
        b_rows = tl.make_tensor_descriptor(b_ptr, [N, K], [strides[1], 1], [BLOCK_N, BLOCK_K])
    else:
        b_rows = tl.make_tensor_descriptor(b_ptr, [K, N], [strides[1], 1], [BLOCK_K, BLOCK_N])
    wide = tl.full([], N, tl.int64)
    out_rows = tl.make_tensor_descriptor(out_ptr, [M, N], [wide, 1], [BLOCK_M, BLOCK_N])
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
        row, col = tile_place(tile, down, across)
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for step in range(steps):
            if TURNED[0]:
                a = a_rows.load([step * BLOCK_K, row * BLOCK_M]).T
            else:
                a = a_rows.load([row * BLOCK_M, step * BLOCK_K])
            if TURNED[1]:
                b = b_rows.load([col * BLOCK_N, step * BLOCK_K]).T
            else:
                b = b_rows.load([step * BLOCK_K, col * BLOCK_N])
            acc = tl.dot(a, b, acc)
        cols = col * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        acc = plus_bias(acc, bias_ptr, cols * 0, cols, (0, 0, strides[2]), cols < N, numbers)
        if EPILOGUE is None:
            out_rows.store([row * BLOCK_M, col * BLOCK_N], acc.to(out_ptr.dtype.element_ty))
        else:
            x = 0.0 if x_ptr is None else x_rows.load([row * BLOCK_M, col * BLOCK_N])
            y = 0.0 if y_ptr is None else y_rows.load([row * BLOCK_M, col * BLOCK_N])
            first, second = EPILOGUE(acc, x, y)
            out_rows.store([row * BLOCK_M, col * BLOCK_N], first.to(out_ptr.dtype.element_ty))
            if second_ptr is not None:
                second_rows.store([row * BLOCK_M, col * BLOCK_N], second.to(second_ptr.dtype.element_ty))


def described(x):
    """Whether a tensor descriptor can tell of a matrix: rows or columns that begin at multiples of 16 bytes."""
    inner, outer = (0, 1) if x.stride(0) == 1 and x.stride(1) != 1 else (1, 0)
    return x.stride(inner) == 1 and x.stride(outer) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def turned(x):
    """Whether a matrix that a descriptor can tell of lies by columns."""
    return x.stride(0) == 1 and x.stride(1) != 1


def launch_matmul(a, b, bias, out, numbers, tile, ending=NO_ENDING):
    """In the place of the plain one: through descriptors where half precision, layout and size allow it."""
    (M, N), K = out.shape[-2:], a.shape[-1]
    far = bias is not None and bias.stride(0) != 0
    few = tile[0] * tile[1] < 16384 or a.dim() > 2 or a.element_size() != 2
    held = sum([128 * 128 * x.element_size() for x in (out, *ending[1:]) if x is not None])
    if (
        few
        or far
        or held > SHARED - 2**16
        or not all([described(x) for x in (a, b, out, *ending[1:]) if x is not None])
    ):
        launch_tiles(a, b, bias, out, numbers, tile, 1, triton.cdiv(K, tile[2]) * tile[2], ending)
        return
    beta, alpha = numbers
    large = K >= 2048 and N % 256 == 0 and ending[0] is None
    BLOCK_N, warps = (256, 8) if large else (128, 4)
    stages = min(
        (SHARED - held) // (128 * (128 + BLOCK_N)), 4 if ending[0] is None else 3
    )  # of 64 columns of a and rows of b, 2 bytes each
    tiles = triton.cdiv(M, 128) * triton.cdiv(N, BLOCK_N)
    strides = a.stride(1 if turned(a) else 0), b.stride(1 if turned(b) else 0), 0 if bias is None else bias.stride(1)
    descriptor_kernel[(min(PROCESSORS, tiles),)](
        a,
        b,
        bias,
        out,
        ending[1:],
        (M, N, K),
        strides,
        (number_argument(beta, a.dtype), number_argument(alpha, a.dtype)),
        TILE=(128, BLOCK_N, 64),
        TURNED=(turned(a), turned(b)),
        PROGRAMS=PROCESSORS,
        EPILOGUE=ending[0],
        num_warps=warps,
        num_stages=stages,
    )
