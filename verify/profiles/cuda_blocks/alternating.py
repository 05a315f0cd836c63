"""Matrix products in half precision on sm_90, in Gluon, Triton's lower-level language, which assigns work to warps.

Four warps load (by TMA), and two groups of four process tiles in turn: one multiplies while the other stores
its result. For batches of matrices (BATCHED), descriptors and tiles have an additional dimension.
"""

import triton
import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper
from blocks.matmul import processors, product_strides, turned
from blocks.tuning import TRITON, TUNING_TARGET
from blocks.types import number_argument

GLUON = ("3.6", "3.9")  # Triton versions with known names for the copy functions, which changed between these two
LONG_SUM = 2048  # columns of a from which the larger tiles in other kernels are used for a single matrix
STAGES = 6  # stages in shared memory, each with 64 columns of a and rows of b


@gluon.jit
def alternating_tile(tile, down, across, GROUP: gl.constexpr):
    """Return row and column for a tile, grouping GROUP rows of tiles so that shared operands are still cached."""
    group = tile // (GROUP * across)
    height = gl.minimum(down - group * GROUP, GROUP)
    inside = tile % (GROUP * across)
    return group * GROUP + inside % height, inside // height


@gluon.jit
def tile_of_batch(tile, down, across, GROUP: gl.constexpr, BATCHED: gl.constexpr):
    """Return batch, row and column for a tile."""
    batch = tile * 0
    if BATCHED:
        batch = tile // (down * across)
        tile = tile % (down * across)
    row, col = alternating_tile(tile, down, across, GROUP)
    return batch, row, col


@gluon.jit
def load_of_3_6(rows, at, full, stage):
    """Start loading a tile into shared memory; `full` counts the arriving bytes."""
    hopper.tma.async_copy_global_to_shared(rows, at, full, stage)


@gluon.jit
def load_of_3_9(rows, at, full, stage):
    hopper.tma.async_load(rows, at, full, stage)


@gluon.jit
def store_of_3_6(rows, at, stage):
    """Start storing a tile from shared memory."""
    hopper.tma.async_copy_shared_to_global(rows, at, stage)


@gluon.jit
def store_of_3_9(rows, at, stage):
    hopper.tma.async_store(rows, at, stage)


@gluon.jit
def load_alternating(
    operands,
    shared,
    tiles,
    TURNED: gl.constexpr,
    GROUP: gl.constexpr,
    DEPTH: gl.constexpr,
    BATCHED: gl.constexpr,
    LOAD: gl.constexpr,
):
    """Load the operands for all tiles of this program, each as soon as a stage is free."""
    a_rows, b_rows = operands
    a_stages, b_stages, full, free, _, _ = shared
    down, across, steps, batches = tiles
    n = 0
    for tile in range(gl.program_id(0), batches * down * across, gl.num_programs(0)):
        batch, row, col = tile_of_batch(tile, down, across, GROUP, BATCHED)
        for step in range(steps):
            stage = n % DEPTH
            # A new barrier counts as passed for parity 1, so the first DEPTH waits do not block.
            hopper.mbarrier.wait(free.index(stage), ((n // DEPTH) & 1) ^ 1)
            arrival = full.index(stage)
            hopper.mbarrier.expect(arrival, 2 * 128 * 64 * 2)
            a_at = [step * 64, row * 128] if TURNED[0] else [row * 128, step * 64]
            b_at = [col * 128, step * 64] if TURNED[1] else [step * 64, col * 128]
            LOAD(a_rows, [batch, a_at[0], a_at[1]] if BATCHED else a_at, arrival, a_stages.index(stage))
            LOAD(b_rows, [batch, b_at[0], b_at[1]] if BATCHED else b_at, arrival, b_stages.index(stage))
            n += 1


@gluon.jit
def multiply_alternating(
    out_rows,
    bias,
    shared,
    tiles,
    WHICH: gl.constexpr,
    TURNED: gl.constexpr,
    GROUP: gl.constexpr,
    DEPTH: gl.constexpr,
    BATCHED: gl.constexpr,
    STORE: gl.constexpr,
):
    """Multiply every second tile of this program, starting with the first (WHICH 0) or the second (WHICH 1).

    The barriers `turns` notify each warp group when the other has issued its last product. Only then is it
    certain that all stages for an earlier tile were full.
    """
    a_stages, b_stages, full, free, stores, turns = shared
    down, across, steps, batches = tiles
    bias_ptr, N, bias_stride, beta, alpha = bias
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16])
    half: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    a_tile: gl.constexpr = (64, 128) if TURNED[0] else (128, 64)
    b_tile: gl.constexpr = (128, 64) if TURNED[1] else (64, 128)
    n = steps * WHICH
    parity = 1 - WHICH
    first = gl.program_id(0) + WHICH * gl.num_programs(0)
    for tile in range(first, batches * down * across, 2 * gl.num_programs(0)):
        batch, row, col = tile_of_batch(tile, down, across, GROUP, BATCHED)
        hopper.mbarrier.wait(turns.index(WHICH), parity)
        parity ^= 1
        acc = gl.zeros((128, 128), gl.float32, layout)
        for step in range(steps):
            stage = n % DEPTH
            hopper.mbarrier.wait(full.index(stage), (n // DEPTH) & 1)
            a = a_stages.index(stage).reshape(a_tile) if BATCHED else a_stages.index(stage)
            b = b_stages.index(stage).reshape(b_tile) if BATCHED else b_stages.index(stage)
            a = a.permute((1, 0)) if TURNED[0] else a
            b = b.permute((1, 0)) if TURNED[1] else b
            acc = hopper.warpgroup_mma(a, b, acc, is_async=True)
            acc = hopper.warpgroup_mma_wait(1, deps=(acc,))
            # The product before the one just issued is complete, so its stage is free.
            hopper.mbarrier.arrive(free.index((n + DEPTH - 1) % DEPTH), pred=step > 0)
            n += 1
        hopper.mbarrier.arrive(turns.index(1 - WHICH))
        acc = hopper.warpgroup_mma_wait(0, deps=(acc,))
        hopper.mbarrier.arrive(free.index((n + DEPTH - 1) % DEPTH))
        n += steps  # skip the stages that the other warp group consumes
        acc *= alpha
        if bias_ptr is not None:
            cols = (col * 128 + gl.arange(0, 128, gl.SliceLayout(0, layout))).to(gl.int64)
            acc += (beta * gl.load(bias_ptr + cols * bias_stride, mask=cols < N, other=0.0).to(gl.float32))[None, :]
        halves = gl.split(gl.permute(gl.reshape(acc.to(out_rows.dtype), (128, 2, 64)), (0, 2, 1)))
        for k in gl.static_range(2):
            # The previous store from this buffer has to be read completely before it is overwritten.
            hopper.tma.store_wait(0)
            buffer = stores.index(WHICH).reshape((128, 64)) if BATCHED else stores.index(WHICH)
            buffer.store(gl.convert_layout(halves[k], half))
            hopper.fence_async_shared()
            at = [row * 128, col * 128 + k * 64]
            STORE(out_rows, [batch, at[0], at[1]] if BATCHED else at, stores.index(WHICH))
    hopper.tma.store_wait(0)


@gluon.jit
def rows_of_matrices(
    x_ptr, batches, shape, apart, stride, TILE: gl.constexpr, LAYOUT: gl.constexpr, BATCHED: gl.constexpr
):
    """Return a descriptor for a matrix, or for batches whose matrices are `apart` elements apart."""
    if BATCHED:
        rows = hopper.tma.make_tensor_descriptor(x_ptr, (batches, shape[0], shape[1]), [apart, stride, 1], TILE, LAYOUT)
    else:
        rows = hopper.tma.make_tensor_descriptor(x_ptr, shape, [stride, 1], TILE, LAYOUT)
    return rows


@gluon.jit
def alternating_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    out_ptr,
    sizes,
    strides,
    factors,
    TURNED: gl.constexpr,
    GROUP: gl.constexpr,
    DEPTH: gl.constexpr,
    BATCHED: gl.constexpr,
    LOAD: gl.constexpr,
    STORE: gl.constexpr,
):
    """Compute out = beta * bias + alpha * a @ b in tiles with 128 x 128 elements.

    Each program processes every n-th tile, for n programs.

    Args:
        a_ptr: [M, K] or [batches, M, K], read.
        b_ptr: [K, N] or [batches, K, N], read.
        bias_ptr: [N], read, or None.
        out_ptr: [M, N] or [batches, M, N], written.
        sizes: (M, N, K, batches).
        strides: Strides of a's rows (TURNED: columns), b's rows (TURNED: columns), bias, out's rows, and the
            batches of a, b and out.
        factors: (beta, alpha), encoded by `number_argument`.
        TURNED: For a and b, True if the matrix is stored by columns.
        GROUP: Rows of tiles that are processed together.
        DEPTH: Number of stages in shared memory.
        BATCHED: True for batches of matrices.
        LOAD: Function for the Triton version that compiles this, which copies a tile into shared memory.
        STORE: Function for this version that copies a tile from shared memory.

    One partition of warps loads, and two multiply alternately.
    """
    M, N, K, batches = sizes
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    one: gl.constexpr = [1] if BATCHED else []
    a_tile: gl.constexpr = one + ([64, 128] if TURNED[0] else [128, 64])
    b_tile: gl.constexpr = one + ([128, 64] if TURNED[1] else [64, 128])
    out_tile: gl.constexpr = one + [128, 64]
    a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(a_tile, dtype)
    b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(b_tile, dtype)
    out_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(out_tile, dtype)
    a_shape = (K, M) if TURNED[0] else (M, K)
    b_shape = (N, K) if TURNED[1] else (K, N)
    a_rows = rows_of_matrices(a_ptr, batches, a_shape, strides[4], strides[0], a_tile, a_layout, BATCHED)
    b_rows = rows_of_matrices(b_ptr, batches, b_shape, strides[5], strides[1], b_tile, b_layout, BATCHED)
    out_rows = rows_of_matrices(out_ptr, batches, (M, N), strides[6], strides[3], out_tile, out_layout, BATCHED)
    a_stages = gl.allocate_shared_memory(dtype, [DEPTH] + a_tile, a_layout)
    b_stages = gl.allocate_shared_memory(dtype, [DEPTH] + b_tile, b_layout)
    stores = gl.allocate_shared_memory(dtype, [2] + out_tile, out_layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], hopper.mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], hopper.mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    for i in gl.static_range(DEPTH):
        hopper.mbarrier.init(full.index(i), count=1)
        hopper.mbarrier.init(free.index(i), count=1)
    for i in gl.static_range(2):
        hopper.mbarrier.init(turns.index(i), count=1)
    hopper.fence_async_shared()
    tiles = gl.cdiv(M, 128), gl.cdiv(N, 128), gl.cdiv(K, 64), batches
    shared = a_stages, b_stages, full, free, stores, turns
    bias = bias_ptr, N, strides[2], factors[0], factors[1]
    zero: gl.constexpr = gl.constexpr(0)
    other: gl.constexpr = gl.constexpr(1)
    gl.warp_specialize(
        [
            (multiply_alternating, (out_rows, bias, shared, tiles, zero, TURNED, GROUP, DEPTH, BATCHED, STORE)),
            (multiply_alternating, (out_rows, bias, shared, tiles, other, TURNED, GROUP, DEPTH, BATCHED, STORE)),
            (load_alternating, ((a_rows, b_rows), shared, tiles, TURNED, GROUP, DEPTH, BATCHED, LOAD)),
        ],
        [4, 4],  # warps in addition to those of the launch
        [232, 40],  # registers per thread in these partitions
    )


def alternates(a, out, ending):
    """Return True if `launch_alternating` supports a product whose tensors descriptors can describe.

    Long sums for a single matrix use the larger tiles in other kernels.
    """
    known = TUNING_TARGET == "sm_90" and TRITON in GLUON and ending[0] is None
    return known and out.dtype == a.dtype and a.shape[-1] >= 64 and (a.dim() == 3 or a.shape[1] < LONG_SUM)


def launch_alternating(a, b, bias, out, numbers):
    """Compute out[...] = beta * bias + alpha * a @ b in two or three dimensions.

    If there are three, the first is not broadcast.
    """
    (M, N), K, deep = out.shape[-2:], a.shape[-1], out.dim() == 3
    batches, apart = out.shape[0] if deep else 1, [x.stride(0) if deep else 0 for x in (a, b, out)]
    a_rows, b_rows = (a.select(0, 0), b.select(0, 0)) if deep else (a, b)
    beta, alpha = numbers
    programs = min(processors(), batches * triton.cdiv(M, 128) * triton.cdiv(N, 128))
    alternating_kernel[(programs,)](
        a,
        b,
        bias,
        out,
        (M, N, K, batches),
        (*product_strides(a_rows, b_rows), 0 if bias is None else bias.stride(1), N, *apart),
        (number_argument(beta, a.dtype), number_argument(alpha, a.dtype)),
        TURNED=(turned(a_rows), turned(b_rows)),
        GROUP=8 if max(N, K) <= 512 or N > 2048 else 1,
        DEPTH=STAGES,
        BATCHED=deep,
        LOAD=load_of_3_6 if TRITON == "3.6" else load_of_3_9,
        STORE=store_of_3_6 if TRITON == "3.6" else store_of_3_9,
        num_warps=4,
    )
