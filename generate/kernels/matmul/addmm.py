"""aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

One program a tile of beta * self + alpha * mat1 @ mat2; self is broadcast through strides of 0 and not read where beta
is 0. Tiles that share rows of mat1 run near each other. Operands are read through their own strides, so transposed
views cost no copy; but before a large product one whose rows do not all begin at multiples of 16 elements, and so
cannot be read 16 bytes at a time, is copied into rows that do, with zeros behind it. fp16 and bf16 are multiplied as
they are. fp32 is split into two numbers of tf32's 11 bits, of whose products all but the least are added up: 22 bits of
each operand count. Sums are in fp32. Integers and fp64 are added up in int64 and fp64, without tensor cores; so is any
K of up to 16, with one product of a column by a row after the other. Where the output has few tiles and K is long, K is
cut into parts: each part's sum goes to a buffer of its own in fp32, and a second kernel adds the parts, always in the
same order, and self.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::addmm",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int32", "int64")


@triton.jit
def plus_bias(acc, bias_ptr, rows, cols, bias_stride, mask, beta, alpha):
    """beta * bias[rows, cols] + alpha * acc."""
    acc *= alpha
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + rows * bias_stride[0] + cols * bias_stride[1], mask=mask, other=0.0)
        acc += beta * bias.to(acc.dtype)
    return acc


@triton.jit
def leading(x):
    """x cut to the 11 significant bits that tf32 has."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def dot(a, b, acc, SPLIT: tl.constexpr):
    """acc + a @ b; SPLIT: of fp32, by three products of tf32. Rests of infinity, and infinity by a rest of 0, are NaN:
    then no rests count. Integers and fp64, which tl.dot does not take, are multiplied one by one."""
    if SPLIT:
        a_high, b_high = leading(a), leading(b)
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
def kernel_addmm(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    part,
    a_rows,
    b_cols,
    beta,
    alpha,
    bias_stride,
    a_stride,
    b_stride,
    out_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
    SPLIT: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Tile of a[:, ks] @ b[ks, :] for the ks of part program_id(1); out has a dimension for the parts in front. a may
    have more rows than M, and b more columns than N, which are read in vain. PARTS: whether there are several, which
    get their bias later."""
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - group * GROUP, GROUP)
    inside = tl.program_id(0) % (GROUP * across)
    rows = (group * GROUP + inside % height).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (inside // height).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1).to(tl.int64) * part
    ks = first + tl.arange(0, BLOCK_K)
    a_ptr += (rows % a_rows)[:, None] * a_stride[0] + ks[None, :] * a_stride[1]
    b_ptr += ks[:, None] * b_stride[0] + (cols % b_cols)[None, :] * b_stride[1]
    element = a_ptr.dtype.element_ty
    wide = tl.float64 if element.is_fp64() else tl.int64 if element.is_int() else tl.float32
    acc = tl.zeros([BLOCK_M, BLOCK_N], wide)
    step = tl.full([], BLOCK_K, tl.int64)  # times a stride, which may be more than 2^31
    for start in range(0, part, BLOCK_K):
        if EVEN:
            a = tl.load(a_ptr)
            b = tl.load(b_ptr)
        else:
            left = K - first - start
            a = tl.load(a_ptr, mask=(tl.arange(0, BLOCK_K) < left)[None, :], other=0.0)
            b = tl.load(b_ptr, mask=(tl.arange(0, BLOCK_K) < left)[:, None], other=0.0)
        acc = dot(a, b, acc, SPLIT)
        a_ptr += step * a_stride[1]
        b_ptr += step * b_stride[0]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    if not PARTS:
        acc = plus_bias(acc, bias_ptr, rows[:, None], cols[None, :], bias_stride, mask, beta, alpha)
    out_ptr += tl.program_id(1).to(tl.int64) * out_stride[0]
    out_ptr += rows[:, None] * out_stride[1] + cols[None, :] * out_stride[2]
    tl.store(out_ptr, acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_thin(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    beta,
    alpha,
    bias_stride,
    a_stride,
    b_stride,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Tile of beta * bias + alpha * a @ b, the sum of K products of a column by a row."""
    across = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    element = a_ptr.dtype.element_ty
    wide = tl.float64 if element.is_fp64() else tl.int64 if element.is_int() else tl.float32
    acc = tl.zeros([BLOCK_M, BLOCK_N], wide)
    for k in tl.static_range(K):
        at = tl.full([], k, tl.int64)
        a = tl.load(a_ptr + rows * a_stride[0] + at * a_stride[1], mask=rows < M, other=0)
        b = tl.load(b_ptr + at * b_stride[0] + cols * b_stride[1], mask=cols < N, other=0)
        acc += a.to(wide)[:, None] * b.to(wide)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    acc = plus_bias(acc, bias_ptr, rows[:, None], cols[None, :], bias_stride, mask, beta, alpha)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_add_parts(
    parts_ptr, bias_ptr, out_ptr, n, N, count, beta, alpha, bias_stride, BLOCK: tl.constexpr, CHUNK: tl.constexpr
):
    """out = beta * bias + alpha * the sum of `count` parts of n elements each, in rows of N; CHUNK parts at a time."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([CHUNK, BLOCK], tl.float32)
    for start in range(0, count, CHUNK):
        k = (start + tl.arange(0, CHUNK)).to(tl.int64)
        acc += tl.load(parts_ptr + k[:, None] * n + i[None, :], mask=(k < count)[:, None] & (i < n)[None, :], other=0.0)
    total = plus_bias(tl.sum(acc, 0), bias_ptr, i // N, i % N, bias_stride, i < n, beta, alpha)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_pad(x_ptr, out_ptr, R, C, height, width, stride, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """out, of this height and width, = x, of R rows of C, with zeros behind and below."""
    across = tl.cdiv(width, BLOCK_C)
    rows = ((tl.program_id(0) // across).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R))[:, None]
    cols = ((tl.program_id(0) % across).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C))[None, :]
    x = tl.load(x_ptr + rows * stride[0] + cols * stride[1], mask=(rows < R) & (cols < C), other=0.0)
    tl.store(out_ptr + rows * width + cols, x, mask=(rows < height) & (cols < width))


def upright(x):
    """Whether x lies column by column."""
    return x.stride(0) == 1 and x.stride(1) != 1


def ragged(x):
    """Whether x cannot be read 16 elements at a time in the dimension that is contiguous."""
    inner = 0 if upright(x) else 1
    return x.stride(inner) != 1 or x.stride(1 - inner) % 16 != 0 or x.shape[inner] % 16 != 0


def padded(x, height, width):
    """x in a new matrix of this height and width, or up to 15 more in its contiguous dimension; elsewhere it is 0."""
    if upright(x):
        return padded(x.transpose(0, 1), width, height).transpose(0, 1)
    width = triton.cdiv(width, 16) * 16
    out = torch.empty((height, width), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(height, 32) * triton.cdiv(width, 128),)
    kernel_pad[grid](x, out, x.shape[0], x.shape[1], height, width, x.stride(), BLOCK_R=32, BLOCK_C=128, num_warps=8)
    return out


def readable(a, b, BLOCK_K):
    """a and b; before a large product, copies of what is ragged, where that is K of both, to a multiple of BLOCK_K."""
    (M, K), N = a.shape, b.shape[1]
    if min(M, N) < 64 or M * N * K < 2**27 or not (ragged(a) or ragged(b)):
        return a, b
    along = (ragged(a) and not upright(a)) or (ragged(b) and upright(b))
    depth = triton.cdiv(K, BLOCK_K) * BLOCK_K if along else K
    a = padded(a, M, depth) if ragged(a) or depth != K else a
    return a, padded(b, depth, N) if ragged(b) or depth != K else b


def tile(M, N, K, half, across):
    """BLOCK_M, BLOCK_N, BLOCK_K and warps; smaller tiles where these would leave processors idle and K is short.
    across: whether mat2 is contiguous along N, which tensor cores of groups of warps do not take of fp32."""
    most = (128, 128) if half else (32, 128) if across else (128, 64)
    BLOCK_M, BLOCK_N = (min(max(triton.next_power_of_2(size), 16), m) for size, m in zip((M, N), most, strict=True))
    small = 4096 if half else 1024
    while K < 2048 and small < BLOCK_M * BLOCK_N and triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) < 128:
        BLOCK_M, BLOCK_N = (BLOCK_M // 2, BLOCK_N) if BLOCK_M > BLOCK_N else (BLOCK_M, BLOCK_N // 2)
    return BLOCK_M, BLOCK_N, 64 if half else 32, 8 if BLOCK_M * BLOCK_N == 16384 else 4


def split(tiles, K, BLOCK_K):
    """Number of parts of K, of 8 steps each at the least, and their length: two tiles for each of 132 processors."""
    parts = max(min(264 // tiles, K // (8 * BLOCK_K)), 1)
    part = triton.cdiv(triton.cdiv(K, parts), BLOCK_K) * BLOCK_K
    return max(triton.cdiv(K, part), 1) if part else 1, part


def thin(mat1, mat2, bias, out, bias_stride, beta, alpha):
    """out = beta * bias + alpha * mat1 @ mat2 of a K of up to 16."""
    M, N = out.shape
    BLOCK_N = min(triton.next_power_of_2(N), 256)
    BLOCK_M = min(triton.next_power_of_2(M), 4096 // BLOCK_N)
    kernel_thin[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        mat1,
        mat2,
        bias,
        out,
        M,
        N,
        beta,
        alpha,
        bias_stride,
        mat1.stride(),
        mat2.stride(),
        K=mat1.shape[1],
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return out


def wrapper(self, mat1, mat2, *, beta=1, alpha=1):
    (M, K), N = mat1.shape, mat2.shape[1]
    bias = None if beta == 0 else self.expand(M, N)
    bias_stride = (0, 0) if bias is None else bias.stride()
    out = torch.empty((M, N), dtype=self.dtype, device=self.device)
    if M * N == 0:
        return out
    if 1 <= K <= 16:
        return thin(mat1, mat2, bias, out, bias_stride, beta, alpha)
    half, single = self.dtype in (torch.float16, torch.bfloat16), self.dtype == torch.float32
    BLOCK_M, BLOCK_N, BLOCK_K, warps = tile(M, N, K, half, mat2.stride(1) == 1) if half or single else (16, 16, 16, 4)
    a, b = readable(mat1, mat2, BLOCK_K) if half or single else (mat1, mat2)
    tiles, K = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), a.shape[1]
    parts, part = split(tiles, K, BLOCK_K) if half or single else (1, triton.cdiv(K, BLOCK_K) * BLOCK_K)
    sums = out.unsqueeze(0)
    if parts > 1:
        sums = torch.empty((parts, M, N), dtype=torch.float32, device=self.device)
    kernel_addmm[(tiles, parts)](
        a,
        b,
        bias,
        sums,
        M,
        N,
        K,
        part,
        a.shape[0],
        b.shape[1],
        beta,
        alpha,
        bias_stride,
        a.stride(),
        b.stride(),
        sums.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP=8,
        EVEN=K % part == 0 if part else True,
        SPLIT=single,
        PARTS=parts > 1,
        num_warps=warps,
        num_stages=3,
    )
    if parts > 1:
        CHUNK = min(triton.next_power_of_2(parts), 64)
        kernel_add_parts[(triton.cdiv(M * N, 2048 // CHUNK),)](
            sums, bias, out, M * N, N, parts, beta, alpha, bias_stride, BLOCK=2048 // CHUNK, CHUNK=CHUNK
        )
    return out
