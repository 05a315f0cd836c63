"""Grouped products in half precision on sm_90, in Gluon: each group of rows is multiplied by its own matrix.

As in `alternating.py`, four warps load, and two groups of four warps process tiles in turn. Only the GPU knows
the number of tiles, so each program walks through the groups and counts tiles.
"""

import triton
import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper
from blocks.alternating import (
    GLUON,
    STAGES,
    alternating_tile,
    load_of_3_6,
    load_of_3_9,
    store_of_3_6,
    store_of_3_9,
)
from blocks.group_products import launch_group_tiles
from blocks.matmul import described, processors, turned
from blocks.tuning import TRITON, TUNING_TARGET


@gluon.jit
def end_of_group(offs_ptr, stride, group, groups, M):
    """Return the end row of a group, clamped to [0, M]; M for a group that does not exist."""
    end = gl.load(offs_ptr + group.to(gl.int64) * stride, mask=group < groups, other=M)
    return gl.minimum(gl.maximum(end, 0), M)


@gluon.jit
def group_with_tile(tile, group, start, end, before, ends, work):
    """Return the group that contains a tile: its number, first row, end row, and the tiles in all groups before it.

    The number is `groups` if no group contains the tile. The search starts at the passed group, which must not
    lie behind the tile.
    """
    offs_ptr, stride = ends
    M, groups, across, _ = work
    while (group < groups) & (tile >= before + gl.cdiv(gl.maximum(end - start, 0), 128) * across):
        before += gl.cdiv(gl.maximum(end - start, 0), 128) * across
        group += 1
        start = end
        end = end_of_group(offs_ptr, stride, group, groups, M)
    return group, start, end, before


@gluon.jit
def load_groups(
    operands,
    shared,
    ends,
    work,
    most,
    TURNED: gl.constexpr,
    DEPTH: gl.constexpr,
    LOAD: gl.constexpr,
):
    """Load the operands for all tiles of this program, each as soon as a stage is free.

    `most` is an upper bound on the number of tiles. `n` counts the stages that were filled; a barrier's parity
    flips each time that the ring of DEPTH stages is completed.
    """
    a_rows, b_rows = operands
    a_stages, b_stages, full, free, _, _ = shared
    M, groups, across, steps = work
    n = 0
    group = gl.program_id(0) * 0
    start, before = group, group
    end = end_of_group(ends[0], ends[1], group, groups, M)
    for tile in range(gl.program_id(0), most, gl.num_programs(0)):
        group, start, end, before = group_with_tile(tile, group, start, end, before, ends, work)
        if group < groups:
            row, col = alternating_tile(tile - before, gl.cdiv(end - start, 128), across, 8)
            for step in range(steps):
                stage = n % DEPTH
                # A new barrier counts as passed for parity 1, so the first DEPTH waits do not block.
                hopper.mbarrier.wait(free.index(stage), ((n // DEPTH) & 1) ^ 1)
                arrival = full.index(stage)
                hopper.mbarrier.expect(arrival, 2 * 128 * 64 * 2)
                LOAD(a_rows, [start + row * 128, step * 64], arrival, a_stages.index(stage))
                b_at = [group, col * 128, step * 64] if TURNED else [group, step * 64, col * 128]
                LOAD(b_rows, b_at, arrival, b_stages.index(stage))
                n += 1


@gluon.jit
def multiply_groups(
    outs,
    shared,
    ends,
    work,
    most,
    WHICH: gl.constexpr,
    TURNED: gl.constexpr,
    DEPTH: gl.constexpr,
    STORE: gl.constexpr,
):
    """Multiply every second tile of this program, as in `multiply_alternating`.

    In a group's last tile, only rows that belong to the group are stored.
    """
    out_rows, out_ptr, N = outs
    a_stages, b_stages, full, free, stores, turns = shared
    M, groups, across, steps = work
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16])
    half: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    b_tile: gl.constexpr = (128, 64) if TURNED else (64, 128)
    n = steps * WHICH
    parity = 1 - WHICH
    first = gl.program_id(0) + WHICH * gl.num_programs(0)
    group = gl.program_id(0) * 0
    start, before = group, group
    end = end_of_group(ends[0], ends[1], group, groups, M)
    for tile in range(first, most, 2 * gl.num_programs(0)):
        group, start, end, before = group_with_tile(tile, group, start, end, before, ends, work)
        if group < groups:
            row, col = alternating_tile(tile - before, gl.cdiv(end - start, 128), across, 8)
            row = start + row * 128
            hopper.mbarrier.wait(turns.index(WHICH), parity)
            parity ^= 1
            acc = gl.zeros((128, 128), gl.float32, layout)
            for step in range(steps):
                stage = n % DEPTH
                hopper.mbarrier.wait(full.index(stage), (n // DEPTH) & 1)
                b = b_stages.index(stage).reshape(b_tile)
                b = b.permute((1, 0)) if TURNED else b
                acc = hopper.warpgroup_mma(a_stages.index(stage), b, acc, is_async=True)
                acc = hopper.warpgroup_mma_wait(1, deps=(acc,))
                # The product before the one just issued is complete, so its stage is free.
                hopper.mbarrier.arrive(free.index((n + DEPTH - 1) % DEPTH), pred=step > 0)
                n += 1
            hopper.mbarrier.arrive(turns.index(1 - WHICH))
            acc = hopper.warpgroup_mma_wait(0, deps=(acc,))
            hopper.mbarrier.arrive(free.index((n + DEPTH - 1) % DEPTH))
            n += steps  # skip the stages that the other warp group consumes
            product = acc.to(out_rows.dtype)
            if row + 128 <= end:
                halves = gl.split(gl.permute(gl.reshape(product, (128, 2, 64)), (0, 2, 1)))
                for k in gl.static_range(2):
                    # The previous store from this buffer has to be read completely before it is overwritten.
                    hopper.tma.store_wait(0)
                    stores.index(WHICH).store(gl.convert_layout(halves[k], half))
                    hopper.fence_async_shared()
                    STORE(out_rows, [row, col * 128 + k * 64], stores.index(WHICH))
            else:
                rows = row + gl.arange(0, 128, gl.SliceLayout(1, layout))
                cols = col * 128 + gl.arange(0, 128, gl.SliceLayout(0, layout))
                at = rows.to(gl.int64)[:, None] * N + cols[None, :]
                gl.store(out_ptr + at, product, mask=(rows < end)[:, None] & (cols < N)[None, :])
    hopper.tma.store_wait(0)


@gluon.jit
def group_products_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    offs_ptr,
    sizes,
    strides,
    TURNED: gl.constexpr,
    DEPTH: gl.constexpr,
    LOAD: gl.constexpr,
    STORE: gl.constexpr,
):
    """Compute out[start:end] = a[start:end] @ b[group] for every group of rows, in tiles with 128 x 128 elements.

    Args:
        a_ptr: [M, K], read.
        b_ptr: [groups, K, N], read.
        out_ptr: [M, N], contiguous, written.
        offs_ptr: [groups], read; the end row of each group.
        sizes: (M, N, K, groups, most), with `most` an upper bound on the number of tiles.
        strides: Strides of a's rows, b's matrices, b's rows (TURNED: columns), the offsets, and the output's
            rows.
        TURNED: True if the matrices in b are stored by columns.
        DEPTH: Number of stages in shared memory.
        LOAD: Function for the Triton version that compiles this, which copies a tile into shared memory.
        STORE: Function for this version that copies a tile from shared memory.

    One partition of warps loads, and two multiply alternately.
    """
    M, N, K, groups, most = sizes
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    a_tile: gl.constexpr = [128, 64]
    b_tile: gl.constexpr = [1, 128, 64] if TURNED else [1, 64, 128]
    a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(a_tile, dtype)
    b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(b_tile, dtype)
    b_shape = (groups, N, K) if TURNED else (groups, K, N)
    a_rows = hopper.tma.make_tensor_descriptor(a_ptr, (M, K), [strides[0], 1], a_tile, a_layout)
    b_rows = hopper.tma.make_tensor_descriptor(b_ptr, b_shape, [strides[1], strides[2], 1], b_tile, b_layout)
    out_rows = hopper.tma.make_tensor_descriptor(out_ptr, (M, N), [strides[4], 1], [128, 64], a_layout)
    a_stages = gl.allocate_shared_memory(dtype, [DEPTH] + a_tile, a_layout)
    b_stages = gl.allocate_shared_memory(dtype, [DEPTH] + b_tile, b_layout)
    stores = gl.allocate_shared_memory(dtype, [2, 128, 64], a_layout)
    full = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], hopper.mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], hopper.mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    for i in gl.static_range(DEPTH):
        hopper.mbarrier.init(full.index(i), count=1)
        hopper.mbarrier.init(free.index(i), count=1)
    for i in gl.static_range(2):
        hopper.mbarrier.init(turns.index(i), count=1)
    hopper.fence_async_shared()
    shared = a_stages, b_stages, full, free, stores, turns
    ends = offs_ptr, strides[3]
    work = M, groups, gl.cdiv(N, 128), gl.cdiv(K, 64)
    outs = out_rows, out_ptr, N
    gl.warp_specialize(
        [
            (multiply_groups, (outs, shared, ends, work, most, gl.constexpr(0), TURNED, DEPTH, STORE)),
            (multiply_groups, (outs, shared, ends, work, most, gl.constexpr(1), TURNED, DEPTH, STORE)),
            (load_groups, ((a_rows, b_rows), shared, ends, work, most, TURNED, DEPTH, LOAD)),
        ],
        [4, 4],  # warps in addition to those of the launch
        [232, 40],  # registers per thread in these partitions
    )


def groups_alternate(a, b, out, offs):
    """Return True if the Gluon kernel supports the call.

    It needs groups with 64 or more rows on average, and tensors that descriptors can describe.
    """
    known = TUNING_TARGET == "sm_90" and TRITON in GLUON
    if (
        not known
        or a.element_size() != 2
        or b.dim() != 3
        or min(a.shape[0] // max(offs.shape[0], 1), *b.shape[1:]) < 64
    ):
        return False
    # Descriptors need strides that are multiples of 16 bytes, which are 8 elements.
    whole = b.stride(0) > 0 and b.stride(0) % 8 == 0 and out.stride(1) == 1 and out.stride(0) == out.shape[1]
    return whole and a.stride(1) == 1 and described(a) and described(b.select(0, 0)) and described(out)


def launch_groups(a, b, out, offs, half):
    """Multiply groups of rows with the Gluon kernel if it supports them, else with the library's kernel."""
    if not groups_alternate(a, b, out, offs):
        launch_group_tiles(a, b, out, offs, half)
        return
    (M, K), N, groups = a.shape, b.shape[2], offs.shape[0]
    most = (M + groups * 127) // 128 * triton.cdiv(N, 128)  # upper bound: each group has at most one partial tile
    group_products_kernel[(min(processors(), most),)](
        a,
        b,
        out,
        offs,
        (M, N, K, groups, most),
        (a.stride(0), b.stride(0), b.stride(2 if turned(b.select(0, 0)) else 1), offs.stride(0), N),
        TURNED=turned(b.select(0, 0)),
        DEPTH=STAGES,
        LOAD=load_of_3_6 if TRITON == "3.6" else load_of_3_9,
        STORE=store_of_3_6 if TRITON == "3.6" else store_of_3_9,
        num_warps=4,
    )
