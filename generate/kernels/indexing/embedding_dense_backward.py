"""aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool
    scale_grad_by_freq) -> Tensor

Gradient rows are summed in fp32 in an order that does not change from run to run: no atomics.

Few comparisons of vocabulary rows with indices: a program per vocabulary row and part of the indices sums the gradient
rows of all indices equal to its own, GATHER at a time; a second kernel adds up the parts in their order.

Else the tokens are sorted by their index with a stable radix sort: each block of tokens counts its digits, then finds
its places from the counts of all blocks. Sorted, tokens of one index are a run. A program per CHUNK sorted tokens sums
the runs inside; of a run that crosses chunks it leaves the pieces, which a last kernel adds up where the run begins.
Work is O(tokens * columns + rows * columns); launches are two, and two per digit.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::embedding_dense_backward",)
DTYPES = ("bfloat16", "float16", "float32")

MOST_COMPARISONS = 33554432  # of vocabulary rows with indices; beyond, sorting is faster
LEAST_COMPARISONS = 1024  # what a vocabulary row costs at least, in comparisons
BITS = 11  # of a digit, at most
BLOCK_PLACE = 128  # tokens, of which all pairs are compared
SORT_BLOCKS = 256  # at most; each reads the counts of all
CHUNK = 16


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def kernel_gather(
    grad_ptr,
    indices_ptr,
    out_ptr,
    m,
    n,
    part,
    padding_idx,
    shape,
    indices_stride,
    grad_row_stride,
    grad_col_stride,
    SCALE: tl.constexpr,
    GATHER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sums over indices program_id(2) * part and on, `part` of them; out has a dimension for the parts in front."""
    word = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([GATHER, BLOCK_N], tl.float32)
    count = tl.zeros([], tl.int32)
    begin = tl.program_id(2).to(tl.int64) * part
    lanes = tl.arange(0, BLOCK_M)
    for start in range(begin, tl.minimum(begin + part, m), BLOCK_M):
        rows = start + lanes.to(tl.int64)
        index = tl.load(indices_ptr + strided(rows, shape, indices_stride), mask=rows < m, other=-1).to(tl.int64)
        same = (rows < m) & (index == word) & (index != padding_idx)
        rank = tl.cumsum(same.to(tl.int32), 0)
        found = tl.sum(same.to(tl.int32), 0)
        count += found
        for first in range(0, found, GATHER):
            ranks = first + 1 + tl.arange(0, GATHER)
            hit = same[None, :] & (rank[None, :] == ranks[:, None])
            row = start + tl.sum(tl.where(hit, lanes[None, :], 0), 1).to(tl.int64)
            offset = strided(row, shape, grad_row_stride)[:, None] + cols[None, :] * grad_col_stride
            mask = (ranks <= found)[:, None] & (cols < n)[None, :]
            acc += tl.load(grad_ptr + offset, mask=mask, other=0).to(tl.float32)
    out = tl.sum(acc, 0)
    if SCALE:
        out = out / tl.maximum(count, 1).to(tl.float32)
    out_ptr += tl.program_id(2).to(tl.int64) * tl.num_programs(0) * n
    tl.store(out_ptr + word * n + cols, out.to(out_ptr.dtype.element_ty), mask=cols < n)


@triton.jit
def kernel_add_parts(parts_ptr, out_ptr, n, count, BLOCK: tl.constexpr):
    """out = the sum of `count` parts of n elements each."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(count):
        total += tl.load(parts_ptr + i, mask=i < n, other=0.0)
        parts_ptr += n
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_count(
    indices_ptr,
    counts_ptr,
    copy_ptr,
    zeros_ptr,
    m,
    n,
    blocks,
    part,
    shift,
    shape,
    stride,
    FIRST: tl.constexpr,
    DIGITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ZEROS: tl.constexpr,
):
    """counts: [blocks, DIGITS], of `part` tokens each.

    At the first digit the indices are copied, and the programs behind those of the blocks zero n elements.
    """
    block = tl.program_id(0).to(tl.int64)
    if block < blocks:
        count = tl.zeros([DIGITS], tl.int32)
        end = tl.minimum(block * part + part, m)
        for start in range(block * part, end, BLOCK):
            i = start + tl.arange(0, BLOCK)
            index = tl.load(indices_ptr + strided(i, shape, stride), mask=i < end, other=0)
            count += tl.histogram(((index >> shift) & (DIGITS - 1)).to(tl.int32), DIGITS, i < end)
            if FIRST:
                tl.store(copy_ptr + i, index.to(copy_ptr.dtype.element_ty), mask=i < end)
        tl.store(counts_ptr + block * DIGITS + tl.arange(0, DIGITS), count)
    else:
        i = (block - blocks) * ZEROS + tl.arange(0, ZEROS)
        tl.store(zeros_ptr + i, tl.zeros([ZEROS], zeros_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def kernel_place(
    indices_ptr,
    tokens_ptr,
    counts_ptr,
    indices_out_ptr,
    tokens_out_ptr,
    m,
    part,
    shift,
    FIRST: tl.constexpr,
    DIGITS: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Tokens of a smaller digit come first, then those of earlier blocks, then those before in the block."""
    block = tl.program_id(0).to(tl.int64)
    digits = tl.arange(0, DIGITS)
    total = tl.zeros([DIGITS], tl.int64)
    place = tl.zeros([DIGITS], tl.int64)
    for first in range(0, tl.num_programs(0), ROWS):
        other = first + tl.arange(0, ROWS)
        mask = (other < tl.num_programs(0))[:, None]
        count = tl.load(counts_ptr + other[:, None] * DIGITS + digits[None, :], mask=mask, other=0)
        total += tl.sum(count, 0)
        place += tl.sum(tl.where((other < block)[:, None], count, 0), 0)
    place += tl.cumsum(total, 0) - total
    lanes = tl.arange(0, BLOCK)
    end = tl.minimum(block * part + part, m)
    for start in range(block * part, end, BLOCK):
        i = start + lanes
        index = tl.load(indices_ptr + i, mask=i < end, other=0)
        digit = ((index >> shift) & (DIGITS - 1)).to(tl.int32)
        earlier = (digit[:, None] == digit[None, :]) & (lanes[None, :] < lanes[:, None])
        to = tl.gather(place, digit, 0) + tl.sum(earlier.to(tl.int32), 1)
        place += tl.histogram(digit, DIGITS, i < end)
        token = i if FIRST else tl.load(tokens_ptr + i, mask=i < end)
        tl.store(indices_out_ptr + to, index, mask=i < end)
        tl.store(tokens_out_ptr + to, token.to(tokens_out_ptr.dtype.element_ty), mask=i < end)


@triton.jit
def kernel_sum_runs(
    grad_ptr,
    indices_ptr,
    tokens_ptr,
    out_ptr,
    pieces_ptr,
    m,
    n,
    padding_idx,
    shape,
    grad_row_stride,
    grad_col_stride,
    SCALE: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """pieces: [chunks, 2, n], of the run that began in a chunk before and of the one that begins here and goes on."""
    chunk = tl.program_id(0).to(tl.int64)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    end = chunk * CHUNK + CHUNK
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    index = tl.load(indices_ptr + i, mask=i < m, other=-1).to(tl.int64)
    before = tl.load(indices_ptr + i - 1, mask=(i > 0) & (i <= m), other=-1).to(tl.int64)
    run = tl.cumsum((index != before).to(tl.int32), 0)  # 0: begins before the chunk
    final = tl.load(indices_ptr + end - 1, mask=end < m, other=-1)
    goes_on = final == tl.load(indices_ptr + end, mask=end < m, other=-2)
    wanted = (index >= 0) & (index != padding_idx)
    token = tl.load(tokens_ptr + i, mask=wanted, other=0).to(tl.int64)
    offset = strided(token, shape, grad_row_stride)[:, None] + cols[None, :] * grad_col_stride
    grad = tl.load(grad_ptr + offset, mask=wanted[:, None] & (cols < n)[None, :], other=0).to(tl.float32)
    last = tl.max(run, 0)
    for r in range(tl.min(run, 0), last + 1):
        own = run == r
        total = tl.sum(tl.where(own[:, None], grad, 0.0), 0)
        word = tl.max(tl.where(own & wanted, index, -1), 0)
        if r == 0:
            tl.store(pieces_ptr + chunk * 2 * n + cols, total, mask=cols < n)
        elif (r == last) & goes_on:
            tl.store(pieces_ptr + (chunk * 2 + 1) * n + cols, total, mask=cols < n)
        else:
            if SCALE:
                total = total / tl.sum(own.to(tl.float32), 0)
            tl.store(
                out_ptr + word * n + cols, total.to(out_ptr.dtype.element_ty), mask=cols < tl.where(word >= 0, n, 0)
            )


@triton.jit
def kernel_add_pieces(
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
    """The program of the chunk where a run begins that goes on adds up its pieces, CHUNKS at a time."""
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
            others = chunk + 1 + tl.arange(0, CHUNKS)
            same = tl.load(indices_ptr + others * CHUNK, mask=others * CHUNK < m, other=-1) == word
            mask = same[:, None] & (cols < n)[None, :]
            total += tl.sum(tl.load(pieces_ptr + others[:, None] * 2 * n + cols[None, :], mask=mask, other=0), 0)
            if SCALE:
                i = (others * CHUNK)[:, None] + tl.arange(0, CHUNK)[None, :]
                own = tl.load(indices_ptr + i, mask=i < m, other=-1) == word
                count += tl.sum(tl.sum(own.to(tl.float32), 1), 0)
            chunk += CHUNKS
            more = tl.sum(same.to(tl.int32), 0) == CHUNKS
        if SCALE:
            total = total / count
        tl.store(out_ptr + word * n + cols, total.to(out_ptr.dtype.element_ty), mask=cols < n)


def scan(grad_output, indices, out, padding_idx, scale_grad_by_freq):
    """Compares every vocabulary row with every index."""
    m, (num_weights, n) = indices.numel(), out.shape
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 512)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 1024)
    across, part, parts, sums = triton.cdiv(n, BLOCK_N), m, 1, out
    if not scale_grad_by_freq and out.numel():
        parts = max(min(4096 // (num_weights * across), triton.cdiv(m, BLOCK_M)), 1)
        part = triton.cdiv(triton.cdiv(m, parts), BLOCK_M) * BLOCK_M
        parts = max(triton.cdiv(m, part), 1) if part else 1
    if parts > 1:
        sums = torch.empty((parts, num_weights, n), dtype=torch.float32, device=out.device)
    kernel_gather[(num_weights, across, parts)](
        grad_output,
        indices,
        sums,
        m,
        n,
        part,
        padding_idx,
        tuple(indices.shape),
        indices.stride(),
        grad_output.stride()[:-1],
        grad_output.stride(-1),
        SCALE=scale_grad_by_freq,
        GATHER=8,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    if parts > 1:
        kernel_add_parts[(triton.cdiv(out.numel(), 1024),)](sums, out, out.numel(), parts, BLOCK=1024)


def sort(indices, out):
    """Indices in ascending order, and the token of each; zeroes out on the way."""
    m, num_weights = indices.numel(), out.shape[0]
    bits = max(int(math.log2(triton.next_power_of_2(num_weights))), 1)
    passes = triton.cdiv(bits, BITS)
    bits = triton.cdiv(bits, passes)
    part = triton.cdiv(triton.cdiv(m, SORT_BLOCKS), BLOCK_PLACE) * BLOCK_PLACE
    blocks, digits = triton.cdiv(m, max(part, 1)), 2**bits
    counts = torch.empty((blocks, digits), dtype=torch.int32, device=out.device)
    dtype = torch.int32 if max(m, num_weights) < 2**31 else torch.int64
    copy, *spare = [torch.empty(m, dtype=dtype, device=out.device) for _ in range(5)]
    tokens, zeros = copy, triton.cdiv(out.numel(), 4096)
    for k in range(passes):
        kernel_count[(blocks + zeros,)](
            indices,
            counts,
            copy,
            out,
            m,
            out.numel(),
            blocks,
            part,
            k * bits,
            tuple(indices.shape),
            indices.stride(),
            FIRST=k == 0,
            DIGITS=digits,
            BLOCK=1024,
            ZEROS=4096,
        )
        kernel_place[(blocks,)](
            indices if k else copy,
            tokens,
            counts,
            *spare[:2],
            m,
            part,
            k * bits,
            FIRST=k == 0,
            DIGITS=digits,
            BLOCK=BLOCK_PLACE,
            ROWS=max(8192 // digits, 1),
            num_warps=8,
        )
        indices, tokens, zeros, spare = *spare[:2], 0, spare[2:] + spare[:2]
    return indices, tokens


def wrapper(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    m, n = indices.numel(), grad_output.shape[-1]
    if grad_output.shape[:-1] != indices.shape:
        grad_output = grad_output.view((*indices.shape, n))  # an error where it has not a row for each index
    out = torch.empty((num_weights, n), dtype=grad_output.dtype, device=grad_output.device)
    if num_weights * max(m, LEAST_COMPARISONS) <= MOST_COMPARISONS:
        scan(grad_output, indices, out, padding_idx, scale_grad_by_freq)
        return out
    ascending, tokens = sort(indices, out)
    columns = min(triton.next_power_of_2(max(n, 1)), 128)
    chunks = triton.cdiv(m, CHUNK)
    grid = chunks, triton.cdiv(n, columns)
    pieces = torch.empty((chunks, 2, n), dtype=torch.float32, device=out.device)
    kernel_sum_runs[grid](
        grad_output,
        ascending,
        tokens,
        out,
        pieces,
        m,
        n,
        padding_idx,
        tuple(indices.shape),
        grad_output.stride()[:-1],
        grad_output.stride(-1),
        SCALE=scale_grad_by_freq,
        CHUNK=CHUNK,
        BLOCK_N=columns,
        num_warps=1,
    )
    kernel_add_pieces[grid](
        ascending,
        pieces,
        out,
        m,
        n,
        padding_idx,
        SCALE=scale_grad_by_freq,
        CHUNK=CHUNK,
        CHUNKS=64,
        BLOCK_N=columns,
    )
    return out
