"""aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool
    scale_grad_by_freq) -> Tensor

Gradient rows are summed in fp32 without atomics, so the order of the sum never changes from run to run. There
are three algorithms:

- Small vocabulary and many tokens: a 0/1 matrix, 1 if a token's index equals a vocabulary row, is multiplied
  by the gradients. fp32 gradients are split into three bf16 terms that add up to them. Each program instance
  takes a part of the tokens, and a second kernel adds up the parts. In such a product, 0 * infinity or 0 *
  NaN would put NaN into every row. So if a part's result contains NaN, that part is summed again, token by
  token.
- Few comparisons (vocabulary rows x indices): one program instance per vocabulary row and part of the
  indices. It sums the gradient rows for all indices equal to its own, GATHER rows at a time. The second
  kernel adds up the parts.
- Otherwise the tokens are sorted by index with a stable radix sort. Each token block counts its digits, then
  computes its positions from the counts in all blocks. After the sort, tokens with one index form a run. A
  program instance per CHUNK sorted tokens sums the runs inside its chunk. If a run crosses chunks, its pieces
  are stored, and a last kernel adds them up in the chunk in which the run begins. The work is O(tokens *
  columns + rows * columns). There are two launches, plus two per digit.
"""

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.limits import PROCESSORS, SMALL_TENSOR
from blocks.offsets import integer, integer_value, strided, walk
from blocks.radix import sort_keys

OVERLOADS = ("aten::embedding_dense_backward",)
DTYPES = ("bfloat16", "float16", "float32")

MOST_COMPARISONS = 33554432  # largest count (rows x indices); above it, sorting is faster
LEAST_COMPARISONS = 1024  # minimum cost per vocabulary row, in comparisons

# A product with a 0/1 matrix multiplies every token by every vocabulary row, so it is for few rows. Its parts
# need many tokens, because each part stores a sum for all rows.
SMALL_VOCABULARY = 256
MANY_TOKENS = 8192
TOKEN_TILE = 64  # tokens per product; parts are multiples of it, so only the last product can be incomplete
PART_TOKENS = 512  # fewest tokens per part, which are eight products
LARGE_SUM = 8192  # elements of a sum from which 4 warps would need 64 registers per thread for it alone

SCAN_PROGRAMS = 4096  # most program instances of a scan; they differ in work, because rows differ in frequency
RUN_CHUNK = 16  # sorted tokens per warp, which has their rows in registers: 64 per thread for 128 columns


@triton.jit
def add_product(mine, x, acc):
    """Return acc + mine @ x, with mine a 0/1 matrix.

    fp32 x is split into three bf16 terms that add up to it, so that the products run in bf16.
    """
    if x.dtype == tl.float32:
        ones = mine.to(tl.bfloat16)
        for _ in tl.static_range(3):
            part = x.to(tl.bfloat16)
            acc = tl.dot(ones, part, acc)
            x = x - part.to(tl.float32)
    else:
        acc = tl.dot(mine.to(x.dtype), x, acc)
    return acc


@triton.jit
def products_kernel(
    grad_ptr,
    indices_ptr,
    sums_ptr,
    m,
    n,
    words,
    part,
    padding_idx,
    indices_steps,
    grad_steps,
    grad_col_stride,
    WORDS: tl.constexpr,
    TOKENS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Multiply a 0/1 matrix by the gradients for `part` tokens, from program_id(1) * part on.

    Args:
        grad_ptr: [m tokens, n], read.
        indices_ptr: [m], read.
        sums_ptr: [parts, words, n], contiguous, written at [program_id(1), WORDS rows, BLOCK_N columns].
        m: Number of tokens.
        n: Number of columns.
        words: Number of vocabulary rows.
        part: Tokens per part; a multiple of TOKENS.
        padding_idx: Vocabulary row without a gradient, or a negative number.
        indices_steps: (shape, strides) of the indices, from `walk`.
        grad_steps: (shape, strides) of the gradient's token dimensions, from `walk`.
        grad_col_stride: Stride between the gradient's columns.
        WORDS: Vocabulary rows per program instance.
        TOKENS: Tokens per matrix product.
        BLOCK_N: Columns per program instance.
    """
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    word = tl.program_id(2) * WORDS + tl.arange(0, WORDS)
    begin = tl.program_id(1).to(tl.int64) * part
    end = tl.minimum(begin + part, m)
    acc = tl.zeros([WORDS, BLOCK_N], tl.float32)
    for start in range(begin, end, TOKENS):
        token = start + tl.arange(0, TOKENS)
        index_offset = strided(token, indices_steps[0], indices_steps[1][0], False, False)
        index = tl.load(indices_ptr + index_offset, mask=token < end, other=-1)
        index = tl.where((index < 0) | (index >= words) | (index == padding_idx), -1, index).to(tl.int32)
        mine = word[:, None] == index[None, :]
        row_offset = strided(token, grad_steps[0], grad_steps[1][0], False, False)
        offset = row_offset[:, None] + (cols * grad_col_stride)[None, :]
        x = tl.load(grad_ptr + offset, mask=(token < end)[:, None] & (cols < n)[None, :], other=0)
        acc = add_product(mine, x, acc)
    # 0 * infinity is NaN, so one infinite gradient spoils all rows: sum again without products.
    if tl.max(tl.reshape((acc != acc).to(tl.int32), [WORDS * BLOCK_N]), 0) > 0:
        acc = tl.zeros([WORDS, BLOCK_N], tl.float32)
        for at in range(begin, end):
            token = tl.cast(at, tl.int64)
            index = tl.load(indices_ptr + strided(token, indices_steps[0], indices_steps[1][0], False, False))
            row_offset = strided(token, grad_steps[0], grad_steps[1][0], False, False)
            x = tl.load(grad_ptr + row_offset + cols * grad_col_stride, mask=cols < n, other=0).to(tl.float32)
            mine = (word == index) & (index != padding_idx)
            acc += tl.where(mine[:, None], x[None, :], 0.0)
    sums_ptr += tl.program_id(1).to(tl.int64) * words * n
    mask = (word < words)[:, None] & (cols < n)[None, :]
    tl.store(sums_ptr + word[:, None] * n + cols[None, :], acc.to(sums_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gather_kernel(
    grad_ptr,
    indices_ptr,
    out_ptr,
    m,
    n,
    part,
    padding_idx,
    indices_steps,
    grad_steps,
    grad_col_stride,
    SCALE: tl.constexpr,
    PLAIN: tl.constexpr,
    GATHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sum the gradient rows for one vocabulary row over `part` indices, from program_id(2) * part on.

    Within a block of BLOCK_M indices, a prefix sum numbers the matches. GATHER matching rows are loaded at a
    time.

    Args:
        grad_ptr: [m tokens, n], read.
        indices_ptr: [m], read.
        out_ptr: [parts, num_weights, n], contiguous, written.
        m: Number of tokens.
        n: Number of columns.
        part: Tokens per part.
        padding_idx: Vocabulary row without a gradient, or a negative number.
        indices_steps: (shape, strides) of the indices, from `walk`.
        grad_steps: (shape, strides) of the gradient's token dimensions, from `walk`.
        grad_col_stride: Stride between the gradient's columns.
        SCALE: Divide by the row's frequency; only valid if there is one part.
        PLAIN: True if integers are encoded by `plain`, except padding_idx.
        GATHER: Matching rows that are loaded at a time.
        BLOCK_M: Tokens that are compared at a time.
        BLOCK_N: Columns per program instance.
    """
    m, n, part = integer_value(m, PLAIN), integer_value(n, PLAIN), integer_value(part, PLAIN)
    word = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([GATHER, BLOCK_N], tl.float32)
    count = tl.zeros([], tl.int32)
    begin = tl.program_id(2).to(tl.int64) * part
    lanes = tl.arange(0, BLOCK_M)
    for start in range(begin, tl.minimum(begin + part, m), BLOCK_M):
        rows = start + lanes.to(tl.int64)
        index_offset = strided(rows, indices_steps[0], indices_steps[1][0], False, PLAIN)
        index = tl.load(indices_ptr + index_offset, mask=rows < m, other=-1).to(tl.int64)
        is_match = (rows < m) & (index == word) & (index != padding_idx)
        rank = tl.cumsum(is_match.to(tl.int32), 0)
        match_count = tl.sum(is_match.to(tl.int32), 0)
        count += match_count
        for first in range(0, match_count, GATHER):
            ranks = first + 1 + tl.arange(0, GATHER)
            # Each rank matches one lane at most, so the sum over lanes selects that lane's row.
            hit = is_match[None, :] & (rank[None, :] == ranks[:, None])
            row = start + tl.sum(tl.where(hit, lanes[None, :], 0), 1).to(tl.int64)
            offset = strided(row, grad_steps[0], grad_steps[1][0], False, PLAIN)[:, None]
            offset += (cols * integer_value(grad_col_stride, PLAIN))[None, :]
            mask = (ranks <= match_count)[:, None] & (cols < n)[None, :]
            acc += tl.load(grad_ptr + offset, mask=mask, other=0).to(tl.float32)
    out = tl.sum(acc, 0)
    if SCALE:
        out = out / tl.maximum(count, 1).to(tl.float32)
    out_ptr += tl.program_id(2).to(tl.int64) * tl.num_programs(0) * n
    tl.store(out_ptr + word * n + cols, out.to(out_ptr.dtype.element_ty), mask=cols < n)


@triton.jit
def parts_kernel(parts_ptr, out_ptr, n, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Sum parts_ptr [count, n] over its first dimension into out_ptr [n].

    PARTS accumulators each take every PARTS-th part, and are added up at the end.

    Args:
        parts_ptr: [count, n], contiguous, read.
        out_ptr: [n], contiguous, written.
        n: Elements per part.
        count: Number of parts.
        PARTS: Parts that are loaded at a time.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, PARTS)
    total = tl.zeros([PARTS, BLOCK], tl.float32)
    for first in range(0, count, PARTS):
        part = first + lane.to(tl.int64)
        mask = (part < count)[:, None] & (i < n)[None, :]
        total += tl.load(parts_ptr + part[:, None] * n + i[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.sum(total, 0).to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def runs_kernel(
    grad_ptr,
    indices_ptr,
    tokens_ptr,
    out_ptr,
    pieces_ptr,
    m,
    n,
    padding_idx,
    grad_steps,
    grad_col_stride,
    SCALE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sum the runs of equal indices inside one chunk of CHUNK sorted tokens.

    Args:
        grad_ptr: [m tokens, n], read.
        indices_ptr: [m], the sorted indices, read.
        tokens_ptr: [m], the token of each sorted index, read.
        out_ptr: [rows, n], contiguous, written for the runs that lie inside the chunk.
        pieces_ptr: [chunks, 2, n] fp32, written. Piece 0 belongs to a run that began in an earlier chunk, and
            piece 1 to a run that begins here and continues.
        m: Number of tokens.
        n: Number of columns.
        padding_idx: Vocabulary row without a gradient, or a negative number.
        grad_steps: (shape, strides) of the gradient's token dimensions, from `walk`.
        grad_col_stride: Stride between the gradient's columns.
        SCALE: Divide by the row's frequency.
        CHUNK: Sorted tokens per program instance.
        BLOCK_N: Columns per program instance.
    """
    chunk = tl.program_id(0).to(tl.int64)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    end = chunk * CHUNK + CHUNK
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    index = tl.load(indices_ptr + i, mask=i < m, other=-1).to(tl.int64)
    before = tl.load(indices_ptr + i - 1, mask=(i > 0) & (i <= m), other=-1).to(tl.int64)
    run = tl.cumsum((index != before).to(tl.int32), 0)  # run 0 began before the chunk
    final = tl.load(indices_ptr + end - 1, mask=end < m, other=-1)
    goes_on = final == tl.load(indices_ptr + end, mask=end < m, other=-2)
    wanted = (index >= 0) & (index != padding_idx)
    token = tl.load(tokens_ptr + i, mask=wanted, other=0).to(tl.int64)
    offset = strided(token, grad_steps[0], grad_steps[1][0], False, False)[:, None] + cols[None, :] * grad_col_stride
    grad = tl.load(grad_ptr + offset, mask=wanted[:, None] & (cols < n)[None, :], other=0).to(tl.float32)
    last = tl.max(run, 0)
    for r in range(tl.min(run, 0), last + 1):  # the chunk is in registers, so a pass over it per run is cheap
        in_run = run == r
        total = tl.sum(tl.where(in_run[:, None], grad, 0.0), 0)
        word = tl.max(tl.where(in_run & wanted, index, -1), 0)
        if r == 0:
            tl.store(pieces_ptr + chunk * 2 * n + cols, total, mask=cols < n)
        elif (r == last) & goes_on:
            tl.store(pieces_ptr + (chunk * 2 + 1) * n + cols, total, mask=cols < n)
        else:
            if SCALE:
                total = total / tl.sum(in_run.to(tl.float32), 0)
            tl.store(
                out_ptr + word * n + cols, total.to(out_ptr.dtype.element_ty), mask=cols < tl.where(word >= 0, n, 0)
            )


@triton.jit
def pieces_kernel(
    indices_ptr,
    pieces_ptr,
    out_ptr,
    m,
    n,
    padding_idx,
    SCALE: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Add up the pieces of a run that crosses chunks, CHUNKS pieces at a time.

    The program instance for the chunk in which the run begins does this; all others store nothing.

    Args:
        indices_ptr: [m] sorted indices, read.
        pieces_ptr: [chunks, 2, n] fp32 from `runs_kernel`, read.
        out_ptr: [rows, n], contiguous, written.
        m: Number of tokens.
        n: Number of columns.
        padding_idx: Vocabulary row without a gradient, or a negative number.
        SCALE: Divide by the row's frequency.
        CHUNK: Sorted tokens per chunk, as in `runs_kernel`.
        CHUNKS: Chunks whose pieces are loaded at a time.
        BLOCK_N: Columns per program instance.
    """
    chunk = tl.program_id(0).to(tl.int64)
    end = chunk * CHUNK + CHUNK
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    before = tl.load(indices_ptr + end - CHUNK - 1, mask=chunk > 0, other=-1)
    word = tl.load(indices_ptr + end - 1, mask=end < m, other=-1).to(tl.int64)
    after = tl.load(indices_ptr + end, mask=end < m, other=-2)
    if (word == after) & (word != before) & (word != padding_idx):
        total = tl.load(pieces_ptr + (chunk * 2 + 1) * n + cols, mask=cols < n, other=0)
        count = tl.zeros([], tl.float32)
        if SCALE:
            first = tl.load(indices_ptr + end - CHUNK + tl.arange(0, CHUNK)) == word
            count += tl.sum(first.to(tl.float32), 0)
        more = chunk >= 0
        while more:
            following = chunk + 1 + tl.arange(0, CHUNKS)
            same = tl.load(indices_ptr + following * CHUNK, mask=following * CHUNK < m, other=-1) == word
            mask = same[:, None] & (cols < n)[None, :]
            total += tl.sum(tl.load(pieces_ptr + following[:, None] * 2 * n + cols[None, :], mask=mask, other=0), 0)
            if SCALE:
                i = (following * CHUNK)[:, None] + tl.arange(0, CHUNK)[None, :]
                in_run = tl.load(indices_ptr + i, mask=i < m, other=-1) == word
                count += tl.sum(tl.sum(in_run.to(tl.float32), 1), 0)
            chunk += CHUNKS
            # Equal indices are neighbors after the sort, so the run ends with the first chunk that differs.
            more = tl.sum(same.to(tl.int32), 0) == CHUNKS
        if SCALE:
            total = total / count
        tl.store(out_ptr + word * n + cols, total.to(out_ptr.dtype.element_ty), mask=cols < n)


def add_parts(sums, out):
    """Sum `sums` over its first dimension into `out`."""
    parts_kernel[(triton.cdiv(out.numel(), 128),)](sums, out, out.numel(), sums.shape[0], PARTS=16, BLOCK=128)


def multiply(grad_output, indices, out, padding_idx):
    """Compute the gradient as a product with a 0/1 matrix, for small vocabularies."""
    m, (words, n) = indices.numel(), out.shape
    WORDS = min(max(triton.next_power_of_2(words), 16), 128)
    BLOCK_N = min(max(triton.next_power_of_2(n), 16), 128)
    across, down = triton.cdiv(n, BLOCK_N), triton.cdiv(words, WORDS)
    parts = max(min(2 * PROCESSORS // (across * down), triton.cdiv(m, PART_TOKENS)), 1)
    part = triton.cdiv(triton.cdiv(m, parts), TOKEN_TILE) * TOKEN_TILE
    parts = triton.cdiv(m, part)
    sums = torch.empty((parts, words, n), dtype=torch.float32, device=out.device) if parts > 1 else out
    # For fp32, 8 warps ran at 0.77 times the speed.
    warps = 8 if WORDS * BLOCK_N >= LARGE_SUM and grad_output.element_size() == 2 else 4
    products_kernel[(across, parts, down)](
        grad_output,
        indices,
        sums,
        m,
        n,
        words,
        part,
        padding_idx,
        walk([indices], range(indices.dim()), False),
        walk([grad_output], range(indices.dim()), False),
        grad_output.stride(-1),
        WORDS=WORDS,
        TOKENS=TOKEN_TILE,
        BLOCK_N=BLOCK_N,
        num_warps=warps,
    )
    if parts > 1:
        add_parts(sums, out)


def scan(grad_output, indices, out, padding_idx, scale_grad_by_freq):
    """Compute the gradient by comparing every vocabulary row with every index."""
    m, (num_weights, n) = indices.numel(), out.shape
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 512)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 1024)
    PLAIN = grad_output.numel() < SMALL_TENSOR
    across, part, parts, sums = triton.cdiv(n, BLOCK_N), m, 1, out
    if not scale_grad_by_freq and out.numel():
        parts = max(min(SCAN_PROGRAMS // (num_weights * across), triton.cdiv(m, BLOCK_M)), 1)
        part = triton.cdiv(triton.cdiv(m, parts), BLOCK_M) * BLOCK_M
        parts = max(triton.cdiv(m, part), 1) if part else 1
    if parts > 1:
        sums = torch.empty((parts, num_weights, n), dtype=torch.float32, device=out.device)
    gather_kernel[(num_weights, across, parts)](
        grad_output,
        indices,
        sums,
        integer(m, PLAIN),
        integer(n, PLAIN),
        integer(part, PLAIN),
        padding_idx,
        walk([indices], range(indices.dim()), PLAIN),
        walk([grad_output], range(indices.dim()), PLAIN),
        integer(grad_output.stride(-1), PLAIN),
        SCALE=scale_grad_by_freq,
        PLAIN=PLAIN,
        GATHER=8,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    if parts > 1:
        add_parts(sums, out)


def wrapper(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    if indices.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"indices must be int32 or int64, got {indices.dtype}")
    m, n = indices.numel(), grad_output.shape[-1]
    if grad_output.shape[:-1] != indices.shape:
        dense = grad_output if grad_output.is_contiguous() else copied(grad_output)
        grad_output = dense.view((*indices.shape, n))  # an error unless rows match indices
    out = torch.empty((num_weights, n), dtype=grad_output.dtype, device=grad_output.device)
    if 0 < num_weights <= SMALL_VOCABULARY and m >= MANY_TOKENS and n and not scale_grad_by_freq:
        multiply(grad_output, indices, out, padding_idx)
        return out
    if num_weights * max(m, LEAST_COMPARISONS) <= MOST_COMPARISONS:
        scan(grad_output, indices, out, padding_idx, scale_grad_by_freq)
        return out
    ascending, tokens = sort_keys(indices, num_weights, out)
    columns = min(triton.next_power_of_2(max(n, 1)), 128)
    chunks = triton.cdiv(m, RUN_CHUNK)
    grid = chunks, triton.cdiv(n, columns)
    pieces = torch.empty((chunks, 2, n), dtype=torch.float32, device=out.device)
    runs_kernel[grid](
        grad_output,
        ascending,
        tokens,
        out,
        pieces,
        m,
        n,
        padding_idx,
        walk([grad_output], range(indices.dim()), False),
        grad_output.stride(-1),
        SCALE=scale_grad_by_freq,
        CHUNK=RUN_CHUNK,
        BLOCK_N=columns,
        num_warps=1,
    )
    pieces_kernel[grid](
        ascending,
        pieces,
        out,
        m,
        n,
        padding_idx,
        SCALE=scale_grad_by_freq,
        CHUNK=RUN_CHUNK,
        CHUNKS=64,
        BLOCK_N=columns,
    )
    return out
