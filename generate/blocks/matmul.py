"""Matrix products: one output tile per program, with programs that share left rows close together.

Operands are read through their own strides, so transposed views cost no copy. fp16 and bf16 are multiplied as
they are. fp32 is split into two numbers of tf32's 11 bits, and all of their products but the smallest are
added, so 22 bits of each operand count. These sums are in fp32. Integers and fp64 are multiplied and added as
they are, without tensor cores.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import integer_values, integers, stride_arguments, stride_values
from blocks.types import compute_types, number_argument, number_value

NO_ENDING = (None, None, None, None)  # no epilogue; see `ending` of matmul


@triton.jit
def tf32_part(x):
    """Truncate x to the 11 significant bits of tf32."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def tile_product(a, b, acc):
    """Return acc + a @ b; fp32 uses three tf32 products.

    The remainder of infinity is NaN, as is infinity times a remainder of 0, so remainders do not count then.
    Integers and fp64, which tl.dot does not take, are multiplied elementwise.
    """
    if a.dtype == tl.float32:
        a_high, b_high = tf32_part(a), tf32_part(b)
        a_rest, b_rest = a - a_high, b - b_high
        small = tl.dot(a_rest, b_high, input_precision="tf32")
        small = tl.dot(a_high, b_rest, small, input_precision="tf32")
        small = tl.where(small == small, small, 0.0)
        acc += tl.dot(a_high, b_high, small, input_precision="tf32")
    elif acc.dtype == tl.float32:
        acc = tl.dot(a, b, acc)
    else:
        acc += tl.sum(a.to(acc.dtype)[:, :, None] * b.to(acc.dtype)[None, :, :], 1)
    return acc


@triton.jit
def plus_bias(acc, bias_ptr, rows, cols, bias_stride, mask, numbers):
    """Return beta * bias[rows, cols] + alpha * acc; `numbers` is (beta, alpha)."""
    acc *= number_value(numbers[1], acc.dtype)
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + rows * bias_stride[1] + cols * bias_stride[2], mask=mask, other=0)
        acc += number_value(numbers[0], acc.dtype) * bias.to(acc.dtype)
    return acc


@triton.jit
def ended(acc, ending, rows, cols, N, mask, EPILOGUE: tl.constexpr):
    """Return the two values that EPILOGUE makes from acc, x and y at rows and cols.

    `ending` is (x_ptr, y_ptr, second_ptr); an absent operand is 0.
    """
    x_ptr, y_ptr, _ = ending
    offset = rows * N + cols
    x = 0.0 if x_ptr is None else tl.load(x_ptr + offset, mask=mask, other=0.0)
    y = 0.0 if y_ptr is None else tl.load(y_ptr + offset, mask=mask, other=0.0)
    return EPILOGUE(acc, x, y)


@triton.jit
def store_ended(acc, out_ptr, ending, rows, cols, N, mask, EPILOGUE: tl.constexpr):
    """Store acc at rows and cols in the output, or store both EPILOGUE results if there is one."""
    offset = rows * N + cols
    if EPILOGUE is None:
        tl.store(out_ptr + offset, acc.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        first, second = ended(acc, ending, rows, cols, N, mask, EPILOGUE)
        tl.store(out_ptr + offset, first.to(out_ptr.dtype.element_ty), mask=mask)
        if ending[2] is not None:
            tl.store(ending[2] + offset, second.to(ending[2].dtype.element_ty), mask=mask)


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

    Parameters of the launch:
        a_ptr, b_ptr: [batch, a_rows, K] and [batch, K, b_cols], read with their strides. Rows beyond M and
            columns beyond N are read in vain.
        bias_ptr: [batch, M, N] or None, read with its strides.
        out_ptr: [batch, M, N] or [parts, M, N], contiguous, written.
        ending: x, y and second from `matmul`.
        sizes: M, N, K, part, a_rows and b_cols.
        numbers: beta and alpha.
        EVEN: K is a multiple of `part`, so loads need no mask.

    Tiles are numbered in groups of 8 tile rows, column by column, so that neighbors share operands in the
    cache.
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
    return batch * max(M * K, K * N, M * N) < 4096


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
    least = 4096 if half else 1024
    while K < 2048 and least < BLOCK_M * BLOCK_N and batch * triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) < 128:
        BLOCK_M, BLOCK_N = (BLOCK_M // 2, BLOCK_N) if BLOCK_M > BLOCK_N else (BLOCK_M, BLOCK_N // 2)
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

    Parameters of the launch:
        a_ptr, b_ptr, bias_ptr: read with their strides; bias_ptr may be None.
        out_ptr: [M, N], contiguous, written.
        ending: x, y and second from `matmul`.
        sizes: M and N; numbers are beta and alpha.
        K: at most 16, unrolled.
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
    BLOCK_M = min(triton.next_power_of_2(M), 4096 // BLOCK_N)
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

    Parameters of the launch:
        parts_ptr: [count, n], contiguous, read.
        bias_ptr: matrix with N columns, read with bias_stride, or None.
        out_ptr: [n], contiguous, written; the ending's operands are contiguous too.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([CHUNK, BLOCK], tl.float32)
    for start in range(0, count, CHUNK):
        k = (start + tl.arange(0, CHUNK)).to(tl.int64)
        acc += tl.load(parts_ptr + k[:, None] * n + i[None, :], mask=(k < count)[:, None] & (i < n)[None, :], other=0.0)
    rows, cols = (i // N).to(tl.int64), (i % N).to(tl.int64)
    total = plus_bias(tl.sum(acc, 0), bias_ptr, rows, cols, bias_stride, i < n, numbers)
    store_ended(total, out_ptr, ending, 0, i, N, i < n, EPILOGUE)


@triton.jit
def pad_kernel(x_ptr, out_ptr, R, C, height, width, stride, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Copy x, [R, C], into out, [height, width], with zeros to the right and below."""
    across = tl.cdiv(width, BLOCK_C)
    rows = ((tl.program_id(0) // across).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R))[:, None]
    cols = ((tl.program_id(0) % across).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C))[None, :]
    x = tl.load(x_ptr + rows * stride[0] + cols * stride[1], mask=(rows < R) & (cols < C), other=0.0)
    tl.store(out_ptr + rows * width + cols, x, mask=(rows < height) & (cols < width))


def _upright(x):
    """Return True if x is stored column by column."""
    return x.stride(0) == 1 and x.stride(1) != 1


def _ragged(x):
    """Return True if x cannot be read 16 elements at a time along its contiguous dimension."""
    inner = 0 if _upright(x) else 1
    return x.stride(inner) != 1 or x.stride(1 - inner) % 16 != 0 or x.shape[inner] % 16 != 0


def _padded(x, height, width):
    """Return a copy of x in a zero-padded matrix with this height and width.

    The contiguous dimension may be up to 15 elements longer.
    """
    if _upright(x):
        return _padded(x.transpose(0, 1), width, height).transpose(0, 1)
    width = triton.cdiv(width, 16) * 16
    out = torch.empty((height, width), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(height, 32) * triton.cdiv(width, 128),)
    pad_kernel[grid](x, out, x.shape[0], x.shape[1], height, width, x.stride(), BLOCK_R=32, BLOCK_C=128, num_warps=8)
    return out


def _readable(a, b, BLOCK_K):
    """Return a and b, or padded copies of ragged operands before a large product.

    If K is the ragged dimension, both operands are padded along K to a multiple of BLOCK_K.
    """
    (M, K), N = a.shape, b.shape[1]
    if min(M, N) < 64 or M * N * K < 2**27 or not (_ragged(a) or _ragged(b)):
        return a, b
    along = (_ragged(a) and not _upright(a)) or (_ragged(b) and _upright(b))
    depth = triton.cdiv(K, BLOCK_K) * BLOCK_K if along else K
    a = _padded(a, M, depth) if _ragged(a) or depth != K else a
    return a, _padded(b, depth, N) if _ragged(b) or depth != K else b


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
        raise RuntimeError(f"matrices {tuple(a.shape)} and {tuple(b.shape)}")
    if M * N == 0:
        return out
    if 1 <= K <= 16 and not _small(1, M, N, K):
        launch_thin(a, b, bias, out, numbers, ending)
    elif half or a.dtype == torch.float32:
        # warp-group tensor core instructions do not take fp32 that is contiguous along N
        tile = matmul_tile(1, M, N, K, half, (128, 128) if half else (32, 128) if b.stride(1) == 1 else (128, 64))
        a, b = _readable(a, b, tile[2])
        _launch_parts(a, b, bias, out, numbers, tile, ending)
    else:
        launch_matmul(a, b, bias, out, numbers, (16, 16, 16, 4), ending)
    return out


def without_terms(a, b):
    """Return matrices, or matrix batches, with K = 0, so their product has the same shape and no terms.

    If alpha is 0, BLAS reads no operand, so a NaN in one must not propagate. Raises RuntimeError if a and b
    do not match.
    """
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"matrices {tuple(a.shape)} and {tuple(b.shape)}")
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
    """Launch one kernel, or two if K is cut into parts with at least 8 steps.

    The number of parts aims at two tiles for each of 132 processors.
    """
    (M, N), K, BLOCK_K = out.shape, a.shape[1], tile[2]
    tiles = triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1])
    parts = max(min(264 // tiles, K // (8 * BLOCK_K)), 1)
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
    large = M * N >= 65536
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
