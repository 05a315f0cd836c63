"""Products of matrices: a program is a tile of the output; those that share rows of the left operand run close by.

Operands are read through their own strides, so transposed views cost no copy. fp16 and bf16 are multiplied as they are;
fp32 is split into two numbers of tf32's 11 bits, of whose products all but the least are added up: 22 bits of each
operand count. Sums are in fp32. Integers and fp64 are multiplied and added up as they are, without tensor cores.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import integer_values, integers, stride_arguments, stride_values
from blocks.types import compute_types, number_argument, number_value

NO_ENDING = (None, None, None, None)  # see matmul


@triton.jit
def tf32_part(x):
    """x cut to the 11 significant bits that tf32 has."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def tile_product(a, b, acc):
    """acc + a @ b; of fp32, by three products of tf32. Rests of infinity, and infinity by a rest of 0, are NaN: then no
    rests count. Integers and fp64, which tl.dot does not take, are multiplied one by one."""
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
    """beta * bias[rows, cols] + alpha * acc. numbers: beta and alpha."""
    acc *= number_value(numbers[1], acc.dtype)
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + rows * bias_stride[1] + cols * bias_stride[2], mask=mask, other=0)
        acc += number_value(numbers[0], acc.dtype) * bias.to(acc.dtype)
    return acc


@triton.jit
def ended(acc, ending, rows, cols, N, mask, EPILOGUE: tl.constexpr):
    """The two values that EPILOGUE makes of acc and of what lies at rows and cols of the ending's operands."""
    x_ptr, y_ptr, _ = ending
    at = rows * N + cols
    x = 0.0 if x_ptr is None else tl.load(x_ptr + at, mask=mask, other=0.0)
    y = 0.0 if y_ptr is None else tl.load(y_ptr + at, mask=mask, other=0.0)
    return EPILOGUE(acc, x, y)


@triton.jit
def store_ended(acc, out_ptr, ending, rows, cols, N, mask, EPILOGUE: tl.constexpr):
    """Store acc at rows and cols of the output, or what EPILOGUE makes of it there and in the second output."""
    at = rows * N + cols
    if EPILOGUE is None:
        tl.store(out_ptr + at, acc.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        first, second = ended(acc, ending, rows, cols, N, mask, EPILOGUE)
        tl.store(out_ptr + at, first.to(out_ptr.dtype.element_ty), mask=mask)
        if ending[2] is not None:
            tl.store(ending[2] + at, second.to(ending[2].dtype.element_ty), mask=mask)


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
    """Tile of a[:, ks] @ b[ks, :] of one matrix of the batch, for the ks of part program_id(1).

    out: [batch, M, N] or [parts, M, N]. a may have more rows than M, and b more columns than N, which are read in vain.
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
    step = tl.full([], BLOCK_K, tl.int64)  # times a stride, which may be more than 2^31
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
    """Strides of a matrix, 0 before them, or of a batch of matrices, as arguments of a launch; () for None."""
    return () if x is None else stride_arguments((0,) * (3 - x.dim()) + x.stride(), small)


def _small(batch, M, N, K):
    return batch * max(M * K, K * N, M * N) < 4096


def _matmul_arguments(a, b, bias, out, ending, sizes, numbers, small):
    """What the kernels take that are no constants. numbers: beta and alpha."""
    strides = matmul_strides(a, small), matmul_strides(b, small), matmul_strides(bias, small)
    beta, alpha = numbers
    numbers = number_argument(beta, a.dtype), number_argument(alpha, a.dtype)
    return a, b, bias, out, ending[1:], integers(sizes, small), strides, numbers


def launch_matmul(a, b, bias, out, numbers, tile, ending=NO_ENDING):
    """out[...] = beta * bias + alpha * a @ b, all of K in one part. A platform may have another way."""
    K, BLOCK_K = a.shape[-1], tile[2]
    launch_tiles(a, b, bias, out, numbers, tile, 1, triton.cdiv(K, BLOCK_K) * BLOCK_K, ending)


def launch_tiles(a, b, bias, out, numbers, tile, parts, part, ending=NO_ENDING):
    """The same, a program a tile and part. tile: BLOCK_M, BLOCK_N, BLOCK_K and warps; parts, part: of K."""
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
    """BLOCK_M, BLOCK_N, BLOCK_K and warps; smaller tiles where these would leave processors idle and K is short."""
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
    """Tile of beta * bias + alpha * a @ b, the sum of K products of a column by a row."""
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    M, N = sizes
    a_stride, b_stride, bias_stride = strides
    across = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], ACC)
    for k in tl.static_range(K):
        at = tl.full([], k, tl.int64)
        a = tl.load(a_ptr + rows * a_stride[1] + at * a_stride[2], mask=rows < M, other=0)
        b = tl.load(b_ptr + at * b_stride[1] + cols * b_stride[2], mask=cols < N, other=0)
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
    """out = beta * bias + alpha * the sum of `count` parts of n elements each, in rows of N; CHUNK parts at a time. All
    but the bias is contiguous: there n elements are one row."""
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
    """out, of this height and width, = x, of R rows of C, with zeros behind and below."""
    across = tl.cdiv(width, BLOCK_C)
    rows = ((tl.program_id(0) // across).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R))[:, None]
    cols = ((tl.program_id(0) % across).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C))[None, :]
    x = tl.load(x_ptr + rows * stride[0] + cols * stride[1], mask=(rows < R) & (cols < C), other=0.0)
    tl.store(out_ptr + rows * width + cols, x, mask=(rows < height) & (cols < width))


def _upright(x):
    """Whether x lies column by column."""
    return x.stride(0) == 1 and x.stride(1) != 1


def _ragged(x):
    """Whether x cannot be read 16 elements at a time in the dimension that is contiguous."""
    inner = 0 if _upright(x) else 1
    return x.stride(inner) != 1 or x.stride(1 - inner) % 16 != 0 or x.shape[inner] % 16 != 0


def _padded(x, height, width):
    """x in a new matrix of this height and width, or up to 15 more in its contiguous dimension; elsewhere it is 0."""
    if _upright(x):
        return _padded(x.transpose(0, 1), width, height).transpose(0, 1)
    width = triton.cdiv(width, 16) * 16
    out = torch.empty((height, width), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(height, 32) * triton.cdiv(width, 128),)
    pad_kernel[grid](x, out, x.shape[0], x.shape[1], height, width, x.stride(), BLOCK_R=32, BLOCK_C=128, num_warps=8)
    return out


def _readable(a, b, BLOCK_K):
    """a and b; before a large product, copies of what is ragged, where that is K of both, to a multiple of BLOCK_K."""
    (M, K), N = a.shape, b.shape[1]
    if min(M, N) < 64 or M * N * K < 2**27 or not (_ragged(a) or _ragged(b)):
        return a, b
    along = (_ragged(a) and not _upright(a)) or (_ragged(b) and _upright(b))
    depth = triton.cdiv(K, BLOCK_K) * BLOCK_K if along else K
    a = _padded(a, M, depth) if _ragged(a) or depth != K else a
    return a, _padded(b, depth, N) if _ragged(b) or depth != K else b


def matmul(a, b, bias=None, beta=1, alpha=1, ending=NO_ENDING, dtype=None):
    """beta * bias + alpha * a @ b in a new matrix. a: [M, K], b: [K, N], bias: [M, N] or None.

    ending: (epilogue, x, y, second), where epilogue is a function of a kernel, epilogue(tile, x's tile, y's tile), that
    makes two values of the tile of the result, in fp32 for half precision: those of the matrix that is returned, whose
    dtype may be another, and of `second`. x, y and second are contiguous [M, N] matrices, or None: then x and y are 0.

    Before a large product an operand whose rows do not all begin at multiples of 16 elements, and so cannot be read 16
    bytes at a time, is copied into rows that do, with zeros behind it. A K of up to 16 needs no tensor cores: one
    product of a column by a row comes after the other, unless all is small. Where the output has few tiles and K is
    long, K is cut into parts: each part's sum goes to a buffer of its own, and a second kernel adds the parts, always
    in the same order.
    """
    (M, K), N = a.shape, b.shape[1]
    numbers = beta, alpha if K else 0  # times the sum of no products, and not NaN where alpha is infinite
    out = torch.empty((M, N), dtype=dtype or a.dtype, device=a.device)
    half = a.dtype in (torch.float16, torch.bfloat16)
    if b.shape[0] != K:
        raise RuntimeError(f"matrices {tuple(a.shape)} and {tuple(b.shape)}")
    if M * N == 0:
        return out
    if 1 <= K <= 16 and not _small(1, M, N, K):
        launch_thin(a, b, bias, out, numbers, ending)
    elif half or a.dtype == torch.float32:
        # tensor cores of groups of warps take no fp32 that is contiguous along N
        tile = matmul_tile(1, M, N, K, half, (128, 128) if half else (32, 128) if b.stride(1) == 1 else (128, 64))
        a, b = _readable(a, b, tile[2])
        _launch_parts(a, b, bias, out, numbers, tile, ending)
    else:
        launch_matmul(a, b, bias, out, numbers, (16, 16, 16, 4), ending)
    return out


def without_terms(a, b):
    """Return matrices, or batches of them, whose product is of the same shape and a sum of no terms: where alpha is 0
    BLAS reads no operand, and NaN in one must not show. Raise RuntimeError if a and b do not fit."""
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"matrices {tuple(a.shape)} and {tuple(b.shape)}")
    shapes = (*a.shape[:-1], 0), (*b.shape[:-2], 0, b.shape[-1])
    return [torch.empty(shape, dtype=a.dtype, device=a.device) for shape in shapes]


def plain_part_sums(a, b, out, tile, parts, part):
    """Of each part of K the product, [parts, M, N] in fp32."""
    sums = torch.empty((parts, *out.shape), dtype=torch.float32, device=out.device)
    launch_tiles(a, b, None, sums, (0, 1), (*tile[:3], 4), parts, part)  # a warp has many rows: K is long enough
    return sums


def part_sums(a, b, out, tile, parts, part):
    """The same. A platform may have another way, and other parts."""
    return plain_part_sums(a, b, out, tile, parts, part)


def _launch_parts(a, b, bias, out, numbers, tile, ending):
    """One launch, or two where K is cut into parts of 8 steps at the least: two tiles for each of 132 processors."""
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
    """out = beta * bias + alpha * the sum of sums [parts, M, N]; numbers are those two, of operands of this dtype. Of a
    large matrix a thread adds parts of its own elements, 16 at a time, and asks no other one."""
    parts, M, N = sums.shape
    large = M * N >= 65536
    CHUNK = min(triton.next_power_of_2(parts), 16 if large else 64)
    more = matmul_strides(bias, False), tuple([number_argument(v, dtype) for v in numbers])
    add_parts_kernel[(triton.cdiv(M * N, 2048 // CHUNK),)](
        sums,
        bias,
        out,
        ending[1:],
        M * N,
        N,
        parts,
        *more,
        BLOCK=2048 // CHUNK,
        CHUNK=CHUNK,
        EPILOGUE=ending[0],
        num_warps=1 if large else 4,
    )
