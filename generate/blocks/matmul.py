"""Matrix products: one output tile per program, with programs that share left rows close together.

Operands are read through their own strides, so transposed views cost no copy. blocks/product_tiles.py computes
each tile, and blocks/padded_operands.py copies operands that cannot be read fast.
"""

import torch
import triton
import triton.language as tl
from blocks.limits import PROCESSORS
from blocks.offsets import integer_values, integers, stride_arguments, stride_values
from blocks.padded_operands import readable_operands
from blocks.product_tiles import plus_bias, store_ended, tile_product
from blocks.types import compute_types, number_argument

NO_ENDING = (None, None, None, None)  # no epilogue; see `ending` of matmul

SMALL_PRODUCT = 4096  # elements of the largest matrix; below this, few kernel variants matter more than speed
THIN_K = 16  # up to this K, a product is a sum of outer products and needs no tensor cores
LONG_K = 2048  # from this K on, tiles do not shrink, because K can be cut into parts instead
ENOUGH_TILES = 128  # nearly one for each of PROCESSORS
PART_STEPS = 8  # a part's sums are stored and read again, so a part has at least this many steps along K

# Output elements from which one warp for every 128 elements gives about four programs for each processor.
LARGE_SUMS = 65536


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    ending,
    sizes,
    strides,
    numbers,
    TILE: tl.constexpr,
    EVEN: tl.constexpr,
    ACC: tl.constexpr,
    PLAIN: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """Compute one tile of a[:, ks] @ b[ks, :] for one batch matrix, with ks in part program_id(1) of K.

    Tiles are numbered in groups of 8 tile rows, column by column, so that neighbors share operands in the
    cache.

    Args:
        a_ptr: [batch, a_rows, K], read with its strides. Rows beyond M are read in vain.
        b_ptr: [batch, K, b_cols], read with its strides. Columns beyond N are read in vain.
        bias_ptr: [batch, M, N] or None, read with its strides.
        out_ptr: [batch, M, N] or [parts, M, N], contiguous, written.
        ending: Pointers to x, y (read) and a second result (written), [M, N] or None each, see `matmul`.
        sizes: M, N, K, part (the length of a part along K), a_rows and b_cols.
        strides: Strides of a, b and bias by batch, row and column.
        numbers: beta and alpha, encoded by `number_argument`.
        TILE: BLOCK_M, BLOCK_N, BLOCK_K.
        EVEN: True if K is a multiple of `part`, so that loads need no mask.
        ACC: Type of the sums.
        PLAIN: True if sizes are encoded by `plain`, and strides by `stride_arguments`.
        EPILOGUE: Function (acc, x, y) -> (first, second), or None.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_K: tl.constexpr = TILE[2]
    M, N, K, part, a_rows, b_cols = integer_values(sizes, PLAIN)
    a_stride, b_stride = stride_values(strides[0], PLAIN), stride_values(strides[1], PLAIN)
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    index = tl.program_id(0) % (down * across)
    group = index // (8 * across)
    height = tl.minimum(down - group * 8, 8)
    inside = index % (8 * across)
    rows = (group * 8 + inside % height).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (inside // height).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1).to(tl.int64) * part
    ks = first + tl.arange(0, BLOCK_K)
    # Rows and columns wrap around instead of being masked: the wrapped ones are computed, but not stored.
    a_ptr += batch * a_stride[0] + (rows % a_rows)[:, None] * a_stride[1] + ks[None, :] * a_stride[2]
    b_ptr += batch * b_stride[0] + ks[:, None] * b_stride[1] + (cols % b_cols)[None, :] * b_stride[2]
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    step = tl.full([], BLOCK_K, tl.int64)  # int64, because its product with a stride may exceed 2^31
    for start in range(0, part, BLOCK_K):
        if EVEN:
            a = tl.load(a_ptr)
            b = tl.load(b_ptr)
        else:
            left = K - first - start
            a = tl.load(a_ptr, mask=(tl.arange(0, BLOCK_K) < left)[None, :], other=0.0)
            b = tl.load(b_ptr, mask=(tl.arange(0, BLOCK_K) < left)[:, None], other=0.0)
        acc = tile_product(a, b, acc)
        a_ptr += step * a_stride[2]
        b_ptr += step * b_stride[1]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    bias_stride = stride_values(strides[2], PLAIN)
    if bias_ptr is not None:
        bias_ptr += batch * bias_stride[0]
    acc = plus_bias(acc, bias_ptr, rows[:, None], cols[None, :], bias_stride, mask, numbers)
    out_ptr += (batch + tl.program_id(1)) * M * N
    store_ended(acc, out_ptr, ending, rows[:, None], cols[None, :], N, mask, EPILOGUE)


def matmul_strides(x, small):
    """Return three strides for a matrix or a matrix batch as launch arguments, or () for None.

    A single matrix gets batch stride 0.
    """
    return () if x is None else stride_arguments((0,) * (3 - x.dim()) + x.stride(), small)


def _small(batch, M, N, K):
    return batch * max(M * K, K * N, M * N) < SMALL_PRODUCT


def _matmul_arguments(a, b, bias, out, ending, sizes, numbers, small):
    """Return the kernel arguments that are not constants; `numbers` is (beta, alpha)."""
    strides = matmul_strides(a, small), matmul_strides(b, small), matmul_strides(bias, small)
    beta, alpha = numbers
    numbers = number_argument(beta, a.dtype), number_argument(alpha, a.dtype)
    return a, b, bias, out, ending[1:], integers(sizes, small), strides, numbers


def launch_matmul(a, b, bias, out, numbers, tile, ending=NO_ENDING):
    """Compute out[...] = beta * bias + alpha * a @ b with all of K in one part.

    A platform may override this function.
    """
    K, BLOCK_K = a.shape[-1], tile[2]
    launch_tiles(a, b, bias, out, numbers, tile, 1, triton.cdiv(K, BLOCK_K) * BLOCK_K, ending)


def launch_tiles(a, b, bias, out, numbers, tile, parts, part, ending=NO_ENDING):
    """Compute as `launch_matmul`, with one program per tile and K part.

    `tile` is (BLOCK_M, BLOCK_N, BLOCK_K, warps). There are `parts` parts with `part` elements each.
    """
    (M, N), K, batch = out.shape[-2:], a.shape[-1], a.shape[0] if a.dim() == 3 else 1
    small = _small(batch, M, N, K)
    matmul_kernel[(batch * triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]), parts)](
        *_matmul_arguments(a, b, bias, out, ending, (M, N, K, part, a.shape[-2], b.shape[-1]), numbers, small),
        TILE=tile[:3],
        EVEN=not small and (K % part == 0 if part else True),
        ACC=compute_types(a.dtype)[1],
        PLAIN=small,
        EPILOGUE=ending[0],
        num_warps=tile[3],
        num_stages=3,
    )


def matmul_tile(batch, M, N, K, half, most):
    """Return BLOCK_M, BLOCK_N, BLOCK_K and the warp count.

    Tiles shrink if large ones would leave processors idle and K is short. `most` has the largest BLOCK_M and
    BLOCK_N.
    """
    if _small(batch, M, N, K):
        return 32, 32, 32, 4
    BLOCK_M, BLOCK_N = (min(max(triton.next_power_of_2(size), 16), m) for size, m in zip((M, N), most, strict=True))
    least = 4096 if half else 1024  # the smallest tile: 64 x 64 in half precision, else 32 x 32
    while (
        K < LONG_K
        and least < BLOCK_M * BLOCK_N
        and batch * triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) < ENOUGH_TILES
    ):
        BLOCK_M, BLOCK_N = (BLOCK_M // 2, BLOCK_N) if BLOCK_M > BLOCK_N else (BLOCK_M, BLOCK_N // 2)
    # A tile of 128 x 128 has 64 sums per thread with 8 warps; smaller ones have at most as many with 4.
    return BLOCK_M, BLOCK_N, 64 if half else 32, 8 if BLOCK_M * BLOCK_N == 16384 else 4


@triton.jit
def thin_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    ending,
    sizes,
    strides,
    numbers,
    K: tl.constexpr,
    TILE: tl.constexpr,
    ACC: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """Compute one tile of beta * bias + alpha * a @ b as the sum of K outer products.

    Args:
        a_ptr: [M, K], read with its strides.
        b_ptr: [K, N], read with its strides.
        bias_ptr: [M, N] or None, read with its strides.
        out_ptr: [M, N], contiguous, written.
        ending: Pointers to x, y (read) and a second result (written), [M, N] or None each, see `matmul`.
        sizes: M and N.
        strides: Strides of a, b and bias by batch (not used), row and column.
        numbers: beta and alpha, encoded by `number_argument`.
        K: Inner dimension, at most 16, unrolled.
        TILE: BLOCK_M, BLOCK_N.
        ACC: Type of the sums.
        EPILOGUE: Function (acc, x, y) -> (first, second), or None.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    M, N = sizes
    a_stride, b_stride, bias_stride = strides
    across = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for k in tl.static_range(K):
        offset = tl.full([], k, tl.int64)
        a = tl.load(a_ptr + rows * a_stride[1] + offset * a_stride[2], mask=rows < M, other=0)
        b = tl.load(b_ptr + offset * b_stride[1] + cols * b_stride[2], mask=cols < N, other=0)
        acc += a.to(ACC)[:, None] * b.to(ACC)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    acc = plus_bias(acc, bias_ptr, rows[:, None], cols[None, :], bias_stride, mask, numbers)
    store_ended(acc, out_ptr, ending, rows[:, None], cols[None, :], N, mask, EPILOGUE)


def launch_thin(a, b, bias, out, numbers, ending):
    (M, N), K = out.shape, a.shape[1]
    BLOCK_N = min(triton.next_power_of_2(N), 256)
    BLOCK_M = min(triton.next_power_of_2(M), 4096 // BLOCK_N)  # 32 sums per thread with 4 warps
    thin_kernel[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        *_matmul_arguments(a, b, bias, out, ending, (M, N), numbers, False),
        K=K,
        TILE=(BLOCK_M, BLOCK_N),
        ACC=compute_types(a.dtype)[1],
        EPILOGUE=ending[0],
    )


@triton.jit
def add_parts_kernel(
    parts_ptr,
    bias_ptr,
    out_ptr,
    ending,
    n,
    N,
    count,
    bias_stride,
    numbers,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """Compute out = beta * bias + alpha * the sum of `count` parts of n elements, CHUNK parts at a time.

    Args:
        parts_ptr: [count, n], contiguous, read.
        bias_ptr: Matrix with N columns, read with `bias_stride`, or None.
        out_ptr: [n], contiguous, written.
        ending: Pointers to x, y (read) and a second result (written), [n] contiguous or None each, see
            `matmul`.
        n: Elements per part, M * N.
        N: Columns of the output.
        count: Number of parts.
        bias_stride: Strides of bias by batch (not used), row and column; () without a bias.
        numbers: beta and alpha, encoded by `number_argument`.
        BLOCK: Elements per program.
        CHUNK: Parts per step.
        EPILOGUE: Function (acc, x, y) -> (first, second), or None.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([CHUNK, BLOCK], tl.float32)
    for start in range(0, count, CHUNK):
        k = (start + tl.arange(0, CHUNK)).to(tl.int64)
        acc += tl.load(parts_ptr + k[:, None] * n + i[None, :], mask=(k < count)[:, None] & (i < n)[None, :], other=0.0)
    rows, cols = (i // N).to(tl.int64), (i % N).to(tl.int64)
    total = plus_bias(tl.sum(acc, 0), bias_ptr, rows, cols, bias_stride, i < n, numbers)
    store_ended(total, out_ptr, ending, 0, i, N, i < n, EPILOGUE)


def matmul(a, b, bias=None, beta=1, alpha=1, ending=NO_ENDING, dtype=None):
    """Return beta * bias + alpha * a @ b in a new matrix.

    Before a large product, an operand is copied into zero-padded rows if some row does not begin at a
    multiple of 16 elements, because it cannot be read 16 bytes at a time. A K of up to 16 needs no tensor
    cores: unless all is small, the product is a sum of outer products. If the output has few tiles and K is
    long, K is cut into parts. The sum of each part goes to its own buffer, and a second kernel adds the parts
    in a fixed order.

    Args:
        a: [M, K] matrix.
        b: [K, N] matrix.
        bias: [M, N] matrix or None.
        beta: Factor for the bias.
        alpha: Factor for the product.
        ending: (epilogue, x, y, second). `epilogue` is a device function epilogue(tile, x's tile, y's tile)
            that makes two values from the result tile, which is fp32 for half precision. The first goes to
            the returned matrix and the second to `second`. x, y and second are contiguous [M, N] matrices or
            None; an absent x or y is 0.
        dtype: Result dtype; a's if None.

    Raises:
        RuntimeError: If the shapes do not match.
    """
    (M, K), N = a.shape, b.shape[1]
    numbers = beta, alpha if K else 0  # an empty sum times alpha is 0, not NaN, even if alpha is infinite
    out = torch.empty((M, N), dtype=dtype or a.dtype, device=a.device)
    half = a.dtype in (torch.float16, torch.bfloat16)
    if b.shape[0] != K:
        raise RuntimeError(f"cannot multiply {tuple(a.shape)} by {tuple(b.shape)}")
    if M * N == 0:
        return out
    if 1 <= K <= THIN_K and not _small(1, M, N, K):
        launch_thin(a, b, bias, out, numbers, ending)
    elif half or a.dtype == torch.float32:
        # warp-group tensor core instructions do not take fp32 that is contiguous along N
        tile = matmul_tile(1, M, N, K, half, (128, 128) if half else (32, 128) if b.stride(1) == 1 else (128, 64))
        a, b = readable_operands(a, b, tile[2])
        _launch_parts(a, b, bias, out, numbers, tile, ending)
    else:
        # `tile_product` multiplies 16 x 16 x 16 elements of these types one by one, in registers.
        launch_matmul(a, b, bias, out, numbers, (16, 16, 16, 4), ending)
    return out


def without_terms(a, b):
    """Return matrices, or matrix batches, with K = 0, so their product has the same shape and no terms.

    If alpha is 0, BLAS reads no operand, so a NaN in one must not propagate. Raises RuntimeError if a and b
    do not match.
    """
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"cannot multiply {tuple(a.shape)} by {tuple(b.shape)}")
    shapes = (*a.shape[:-1], 0), (*b.shape[:-2], 0, b.shape[-1])
    return [torch.empty(shape, dtype=a.dtype, device=a.device) for shape in shapes]


def plain_part_sums(a, b, out, tile, parts, part):
    """Return each K part's product, [parts, M, N] in fp32."""
    sums = torch.empty((parts, *out.shape), dtype=torch.float32, device=out.device)
    launch_tiles(a, b, None, sums, (0, 1), (*tile[:3], 4), parts, part)  # 4 warps are enough because K is long
    return sums


def part_sums(a, b, out, tile, parts, part):
    """Return the products from `plain_part_sums`; a platform may override this, also with other parts."""
    return plain_part_sums(a, b, out, tile, parts, part)


def _launch_parts(a, b, bias, out, numbers, tile, ending):
    """Launch one kernel, or two if K is cut into parts with at least PART_STEPS steps.

    The number of parts aims at two tiles for each processor.
    """
    (M, N), K, BLOCK_K = out.shape, a.shape[1], tile[2]
    tiles = triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1])
    parts = max(min(2 * PROCESSORS // tiles, K // (PART_STEPS * BLOCK_K)), 1)
    part = triton.cdiv(triton.cdiv(K, parts), BLOCK_K) * BLOCK_K
    parts = triton.cdiv(K, part) if K else 1
    if parts == 1:
        launch_matmul(a, b, bias, out, numbers, tile, ending)
        return
    add_up_parts(part_sums(a, b, out, tile, parts, part), bias, out, numbers, ending, a.dtype)


def add_up_parts(sums, bias, out, numbers, ending, dtype):
    """Compute out = beta * bias + alpha * the sum of `sums` [parts, M, N]; `numbers` is (beta, alpha).

    `dtype` is the operands' dtype. For a large matrix each thread adds its own elements' parts, 16 at a time,
    so threads exchange nothing.
    """
    parts, M, N = sums.shape
    large = M * N >= LARGE_SUMS
    CHUNK = min(triton.next_power_of_2(parts), 16 if large else 64)
    arguments = matmul_strides(bias, False), tuple([number_argument(v, dtype) for v in numbers])
    add_parts_kernel[(triton.cdiv(M * N, 2048 // CHUNK),)](
        sums,
        bias,
        out,
        ending[1:],
        M * N,
        N,
        parts,
        *arguments,
        BLOCK=2048 // CHUNK,
        CHUNK=CHUNK,
        EPILOGUE=ending[0],
        num_warps=1 if large else 4,
    )
