"""Products with long sums in half precision on sm_90, in Gluon: four warps load, three groups of four multiply.

A tile has 384 x 128 elements, 128 rows for each group. The sum for a tile is split into parts, so that every
multiprocessor has an equal number of products. Weight gradients need this: they sum over all tokens, but have
few tiles.
"""

import math

import torch
import triton
import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper
from blocks.alternating import GLUON, load_of_3_6, load_of_3_9
from blocks.grouped import barriers_of
from blocks.matmul import processors, product_strides, turned
from blocks.tuning import TRITON, TUNING_TARGET

DEEP = 32  # columns in a and rows in b per stage
LONG_ROWS = 384  # rows of a tile; each of the three groups multiplies 128
LONG_COLUMNS = 128  # columns of a tile
STAGED_COLUMNS = 192  # columns of a in all stages; with b's rows, they take (384 + 128) * 192 * 2 = 196,608 bytes
FEWEST_STEPS = 64  # steps per part, because a part's sum has to be stored and added up
SHARE_STEPS = 8  # steps that take as long as beginning and storing one more share
MOST_CUTS = 3  # cuts in the rest of a sum
MOST_SHARES = 4  # shares per program that has several
ADDED = 800  # columns of a whose products take as long as storing a program's sum and adding it up


@gluon.jit
def share_here(i, plan):
    """Return tile, part, first step and number of steps for this program's i-th share.

    Each tile has `parts` programs for the steps before `whole`. The programs after these divide the remaining
    steps, from `whole` on, into shares with `short` steps each; such a program has `shares` shares.
    """
    tiles, parts, whole, shares, short = plan
    late = gl.program_id(0) - parts * tiles
    if late < 0:
        tile = gl.program_id(0) % tiles
        part = gl.program_id(0) // tiles
        first = part * (whole // parts) + gl.minimum(part, whole % parts)
        steps = whole // parts + gl.where(part < whole % parts, 1, 0)
    else:
        share = late * shares + i
        tile = share % tiles
        part = parts + share // tiles
        first = whole + share // tiles * short
        steps = short
    return tile, part, first, steps


@gluon.jit
def shares_here(plan):
    """Return the number of shares for this program."""
    tiles, parts, _, shares, _ = plan
    return gl.where(gl.program_id(0) < parts * tiles, 1, shares)


@gluon.jit
def load_shares(
    operands, shared, plan, down, TURNED: gl.constexpr, DEPTH: gl.constexpr, STEP: gl.constexpr, LOAD: gl.constexpr
):
    """Load the operands for all shares of this program, each as soon as a stage is free."""
    a_rows, b_rows = operands
    a_stages, b_stages, full, free = shared
    n = 0
    for i in range(shares_here(plan)):
        tile, _, first, steps = share_here(i, plan)
        row = tile % down * 384
        col = tile // down * 128
        for step in range(first, first + steps):
            stage = n % DEPTH
            hopper.mbarrier.wait(free.index(stage), ((n // DEPTH) & 1) ^ 1)
            arrival = full.index(stage)
            hopper.mbarrier.expect(arrival, (384 + 128) * STEP * 2)
            b_at = [col, step * STEP] if TURNED[1] else [step * STEP, col]
            LOAD(b_rows, b_at, arrival, b_stages.index(stage))
            for group in gl.static_range(3):
                a_at = [step * STEP, row + group * 128] if TURNED[0] else [row + group * 128, step * STEP]
                LOAD(a_rows, a_at, arrival, a_stages.index(stage * 3 + group))
            n += 1


@gluon.jit
def multiply_shares(sums, shared, plan, down, WHICH: gl.constexpr, TURNED: gl.constexpr, DEPTH: gl.constexpr):
    """Multiply 128 rows of the tile for each of this program's shares, in warp group WHICH."""
    sums_ptr, M, N = sums
    a_stages, b_stages, full, free = shared
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16])
    n = 0
    for i in range(shares_here(plan)):
        tile, part, _, steps = share_here(i, plan)
        acc = gl.zeros((128, 128), gl.float32, layout)
        for step in range(steps):
            stage = n % DEPTH
            hopper.mbarrier.wait(full.index(stage), (n // DEPTH) & 1)
            rows = a_stages.index(stage * 3 + WHICH)
            a = rows.permute((1, 0)) if TURNED[0] else rows
            b = b_stages.index(stage).permute((1, 0)) if TURNED[1] else b_stages.index(stage)
            acc = hopper.warpgroup_mma(a, b, acc, is_async=True)
            acc = hopper.warpgroup_mma_wait(1, deps=(acc,))
            # The product before the one just issued is complete, so its stage is free.
            hopper.mbarrier.arrive(free.index((n + DEPTH - 1) % DEPTH), pred=step > 0)
            n += 1
        acc = hopper.warpgroup_mma_wait(0, deps=(acc,))
        hopper.mbarrier.arrive(free.index((n + DEPTH - 1) % DEPTH))
        row = tile % down * 384 + WHICH * 128 + gl.arange(0, 128, gl.SliceLayout(1, layout))
        col = tile // down * 128 + gl.arange(0, 128, gl.SliceLayout(0, layout))
        at = sums_ptr + part.to(gl.int64) * M * N
        gl.store(at + row[:, None] * N + col[None, :], acc, mask=(row < M)[:, None] & (col < N)[None, :])


@gluon.jit
def shares_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    sizes,
    strides,
    plan,
    TURNED: gl.constexpr,
    DEPTH: gl.constexpr,
    STEP: gl.constexpr,
    LOAD: gl.constexpr,
):
    """Compute the partial sums for a @ b.

    Args:
        a_ptr: [M, K], read.
        b_ptr: [K, N], read.
        sums_ptr: [parts, M, N] in fp32, contiguous, written.
        sizes: (M, N, K).
        strides: Strides between rows in a and b (TURNED: columns).
        plan: The tuple that `share_here` reads.
        TURNED: For a and b, True if the matrix is stored by columns.
        DEPTH: Number of stages in shared memory.
        STEP: Columns of a, and rows of b, per stage.
        LOAD: Function for the Triton version that compiles this, which copies a tile into shared memory.
    """
    M, N, K = sizes
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    a_tile: gl.constexpr = [STEP, 128] if TURNED[0] else [128, STEP]
    b_tile: gl.constexpr = [128, STEP] if TURNED[1] else [STEP, 128]
    a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(a_tile, dtype)
    b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(b_tile, dtype)
    a_shape = (K, M) if TURNED[0] else (M, K)
    b_shape = (N, K) if TURNED[1] else (K, N)
    a_rows = hopper.tma.make_tensor_descriptor(a_ptr, a_shape, [strides[0], 1], a_tile, a_layout)
    b_rows = hopper.tma.make_tensor_descriptor(b_ptr, b_shape, [strides[1], 1], b_tile, b_layout)
    a_stages = gl.allocate_shared_memory(dtype, [DEPTH * 3] + a_tile, a_layout)
    b_stages = gl.allocate_shared_memory(dtype, [DEPTH] + b_tile, b_layout)
    shared = a_stages, b_stages, barriers_of(DEPTH, 1), barriers_of(DEPTH, 3)
    hopper.fence_async_shared()
    down = gl.cdiv(M, 384)
    sums = sums_ptr, M, N
    gl.warp_specialize(
        [
            (multiply_shares, (sums, shared, plan, down, gl.constexpr(0), TURNED, DEPTH)),
            (multiply_shares, (sums, shared, plan, down, gl.constexpr(1), TURNED, DEPTH)),
            (multiply_shares, (sums, shared, plan, down, gl.constexpr(2), TURNED, DEPTH)),
            (load_shares, ((a_rows, b_rows), shared, plan, down, TURNED, DEPTH, STEP, LOAD)),
        ],
        [4, 4, 4],  # warps in addition to those of the launch
        [160, 160, 32],  # registers per thread in these partitions
    )


def worth(sizes, tiles, programs, parts):
    """Estimate the share of the multiprocessors' time that goes into requested products.

    Args:
        sizes: M, N, K.
        tiles: Number of tiles, and elements per tile.
        programs: Number of programs; a multiprocessor runs one at a time.
        parts: Number of partial sums that are added afterwards; 1 if none are.
    """
    (M, N, K), (count, area) = sizes, tiles
    busy = programs / (triton.cdiv(programs, processors()) * processors())
    return M * N / (count * area) * busy / (1 + ADDED * (parts if parts > 1 else 0) / max(K, 1))


def plan_shares(sizes):
    """Return a plan for `share_here`, the total number of parts, and the number of programs.

    The plan holds tiles, parts, `whole`, shares and `short`. Return None if there are more tiles than
    multiprocessors, or if K is short.
    """
    M, N, K = sizes
    tiles, steps = triton.cdiv(M, LONG_ROWS) * triton.cdiv(N, LONG_COLUMNS), triton.cdiv(K, DEEP)
    parts = processors() // tiles
    if parts == 0 or steps < FEWEST_STEPS * parts:
        return None
    late, each, cuts = 0, 1, 0  # additional programs, shares per such program, cuts in the rest of a sum
    for count in range(1, processors() - parts * tiles + 1):
        common = math.gcd(count, tiles)
        if count // common <= MOST_CUTS and tiles // common <= MOST_SHARES:
            late, each, cuts = count, tiles // common, count // common
    short = max(int((steps / parts - SHARE_STEPS * (each - 1)) / (each + cuts / parts)), 0) if late else 0
    if short == 0:
        return (tiles, parts, steps, 1, 0), parts, parts * tiles
    return (tiles, parts, steps - cuts * short, each, short), parts + cuts, parts * tiles + late


def shares_serve(sizes, otherwise):
    """Return the plan with which `sum_shares` should compute a product, or None if another way is better.

    Tensor descriptors have to support both operands. `otherwise` is the best other way's `worth`.
    """
    if TUNING_TARGET != "sm_90" or TRITON not in GLUON:
        return None
    plan = plan_shares(sizes)
    M, N, _ = sizes
    tiles = triton.cdiv(M, LONG_ROWS) * triton.cdiv(N, LONG_COLUMNS), LONG_ROWS * LONG_COLUMNS
    return plan if plan is not None and worth(sizes, tiles, plan[2], plan[1]) > otherwise else None


def sum_shares(a, b, out, plan):
    """Return the partial sums for a @ b by a plan, [parts, M, N] in fp32.

    a and b may have more rows and columns than out [M, N].
    """
    (M, N), K = out.shape, a.shape[1]
    how, parts, programs = plan
    sums = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
    shares_kernel[(programs,)](
        a,
        b,
        sums,
        (M, N, K),
        product_strides(a, b),
        how,
        TURNED=(turned(a), turned(b)),
        DEPTH=STAGED_COLUMNS // DEEP,
        STEP=DEEP,
        LOAD=load_of_3_6 if TRITON == "3.6" else load_of_3_9,
        num_warps=4,
    )
    return sums
