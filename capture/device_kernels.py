"""Triton kernels that hash, measure and copy tensor contents on a GPU; imported at first use.

The hash depends on the order of the bytes. Each 1- to 8-byte word is mixed with its position by a multiply-xorshift
finaliser (after MurmurHash3's fmix64), with two sets of constants. The hash consists of the two sums modulo 2^64.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 1024
BLOCKS = 4  # blocks for each program instance
ROOM = 3 * BLOCK + 1  # float64 scratch elements that the program instances of one reduction share


@triton.jit  # type: ignore[untyped-decorator]
def _mixed(word, position, first: tl.constexpr, second: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mix a word with its position under one pair of constants; uint64 tiles in and out."""
    h = word + (position + 1) * first
    h = (h ^ (h >> 33)) * second
    h = (h ^ (h >> 29)) * first
    return h ^ (h >> 32)


@triton.jit  # type: ignore[untyped-decorator]
def _of_words(ptr, WORD: tl.constexpr):  # type: ignore[no-untyped-def]
    """Cast a pointer to words of WORD bytes."""
    if WORD == 1:
        ptr = ptr.to(tl.pointer_type(tl.uint8))
    elif WORD == 2:
        ptr = ptr.to(tl.pointer_type(tl.int16))
    elif WORD == 4:
        ptr = ptr.to(tl.pointer_type(tl.int32))
    else:
        ptr = ptr.to(tl.pointer_type(tl.int64))
    return ptr


@triton.jit(do_not_specialize=["n", "row"], do_not_specialize_on_alignment=["x_ptr"])  # type: ignore[untyped-decorator]
def _hash_words(x_ptr, n: tl.int64, sums_ptr, row, WORD: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add the hash sums of n words to sums[row, :2].

    Parameters of the launch:
        x_ptr: n words of WORD bytes, read; aligned to WORD bytes.
        sums_ptr, row: int64 [rows, 2]; this row is updated atomically and must start as zeros.
        WORD: 1, 2, 4 or 8 bytes.
        BLOCK, BLOCKS: words in a tile, and tiles for each program instance.

    Each program instance accumulates its tiles in uint64 registers and then does two atomic additions. Integer addition
    is associative modulo 2^64, so the order of the instances does not matter.
    """
    program = tl.program_id(0).to(tl.int64)
    sums_ptr += row.to(tl.int64) * 2
    x_ptr = _of_words(x_ptr, WORD)
    a = tl.zeros([BLOCK], tl.uint64)
    b = tl.zeros([BLOCK], tl.uint64)
    for k in range(BLOCKS):
        position = (program * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        inside = position < n
        word = tl.load(x_ptr + position, mask=inside, other=0).to(tl.uint64)
        unsigned_position = position.to(tl.uint64)
        zero = tl.zeros([BLOCK], tl.uint64)
        a += tl.where(inside, _mixed(word, unsigned_position, 0x4F74430C22A54005, 0x2545F4914F6CDD1D), zero)
        b += tl.where(inside, _mixed(word, unsigned_position, 0x5851F42D4C957F2D, 0x1B8735939E3779B9), zero)
    tl.atomic_add(sums_ptr, tl.sum(a.to(tl.int64, bitcast=True), axis=0))
    tl.atomic_add(sums_ptr + 1, tl.sum(b.to(tl.int64, bitcast=True), axis=0))


@triton.jit
def _left(ptr, mask):  # type: ignore[no-untyped-def]
    """Load values that other program instances stored.

    `.cg` bypasses L1, which is not coherent between multiprocessors.
    """
    return tl.load(ptr, mask=mask, other=0, cache_modifier=".cg")


@triton.jit(do_not_specialize=["row", "blocks"])  # type: ignore[untyped-decorator]
def _sum_up(x_ptr, n: tl.int64, blocks, sums_ptr, row, room_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store sum, sum of |x| and max |x| into sums[row, :3].

    Parameters of the launch:
        x_ptr, n: n contiguous elements, read.
        blocks: Tiles for each program instance.
        sums_ptr, row: float64 [rows, 3]; this row is written.
        room_ptr: float64 [3 * BLOCK + 1] scratch. Its last element is the int64 count of finished instances, 0 at
            launch.
        BLOCK: Elements in a tile, and the maximum number of program instances.

    With several program instances, each stores its partial results in the room and increments the count. The last one
    to finish adds all partial results in a fixed order, so the result does not depend on scheduling. It then resets the
    count for the next launch.
    """
    program = tl.program_id(0).to(tl.int64)
    programs = tl.num_programs(0)
    sums_ptr += row.to(tl.int64) * 3
    total = tl.zeros([BLOCK], tl.float64)
    absolute = tl.zeros([BLOCK], tl.float64)
    greatest = tl.zeros([BLOCK], tl.float64)
    for k in range(blocks):
        position = (program * blocks + k) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + position, mask=position < n, other=0).to(tl.float64)
        total += x
        absolute += tl.abs(x)
        greatest = tl.maximum(greatest, tl.abs(x))
    if programs == 1:
        tl.store(sums_ptr, tl.sum(total, axis=0))
        tl.store(sums_ptr + 1, tl.sum(absolute, axis=0))
        tl.store(sums_ptr + 2, tl.max(greatest, axis=0))
    else:
        tl.store(room_ptr + program, tl.sum(total, axis=0))
        tl.store(room_ptr + BLOCK + program, tl.sum(absolute, axis=0))
        tl.store(room_ptr + 2 * BLOCK + program, tl.max(greatest, axis=0))
        came_ptr = (room_ptr + 3 * BLOCK).to(tl.pointer_type(tl.int64))
        # All threads must have stored their partial results before the count announces them.
        tl.debug_barrier()
        if tl.atomic_add(came_ptr, 1) == programs - 1:
            i = tl.arange(0, BLOCK)
            left_ptr = room_ptr + i
            tl.store(sums_ptr, tl.sum(_left(left_ptr, i < programs), axis=0))
            tl.store(sums_ptr + 1, tl.sum(_left(left_ptr + BLOCK, i < programs), axis=0))
            tl.store(sums_ptr + 2, tl.max(_left(left_ptr + 2 * BLOCK, i < programs), axis=0))
            # No other instance is running, so this needs no atomic.
            tl.store(came_ptr, 0)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr", "to_ptr"])  # type: ignore[untyped-decorator]
def _copy_words(x_ptr, to_ptr, n: tl.int64, WORD: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Copy n words.

    Parameters of the launch:
        x_ptr: n words of WORD bytes, read.
        to_ptr: n words of WORD bytes, written; may be pinned host memory.
        WORD: 1, 2, 4 or 8 bytes.
        BLOCK, BLOCKS: words in a tile, and tiles for each program instance.
    """
    program = tl.program_id(0).to(tl.int64)
    x_ptr, to_ptr = _of_words(x_ptr, WORD), _of_words(to_ptr, WORD)
    for k in range(BLOCKS):
        position = (program * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to_ptr + position, tl.load(x_ptr + position, mask=position < n), mask=position < n)


def hash_into(sums: torch.Tensor, row: int, raw: torch.Tensor) -> int:
    """Add a tensor's two hash sums to one row, and return the word size in bytes, which depends on the address.

    Args:
        sums: int64 [rows, 2] on the GPU.
        row: A row of zeros.
        raw: Contiguous uint8 tensor.
    """
    size, word = raw.numel(), math.gcd(raw.data_ptr(), raw.numel(), 8)
    _launch(_hash_words, (word,), _programs(size // word), raw, size // word, sums, row, word, BLOCK, BLOCKS)
    return word


def copy_into(target: torch.Tensor, source: torch.Tensor) -> None:
    """Start to copy contiguous memory to an equal number of bytes, on the GPU or in pinned host memory."""
    size = source.numel() * source.element_size()
    word = math.gcd(source.data_ptr(), target.data_ptr(), size, 8)
    specialisation = (word, source.dtype, target.dtype)
    _launch(_copy_words, specialisation, _programs(size // word), source, target, size // word, word, BLOCK, BLOCKS)


def moments_into(sums: torch.Tensor, row: int, x: torch.Tensor, room: torch.Tensor) -> None:
    """Put sum, sum of |x| and max |x| into one row; equal contents give bit-identical results.

    Args:
        sums: float64 [rows, 3] on the GPU.
        row: The row to write.
        x: Contiguous tensor, not complex.
        room: float64 [ROOM], zeros at first; only for kernels on one stream.
    """
    x = x.view(torch.uint8) if x.dtype is torch.bool else x
    size = x.numel()
    blocks = max(-(-size // BLOCK**2), BLOCKS)  # so that there are at most BLOCK program instances
    specialisation = (x.dtype, x.data_ptr() % 16, size % 16, size == 1)
    _launch(_sum_up, specialisation, -(-size // (BLOCK * blocks)), x, size, blocks, sums, row, room, BLOCK)


_COMPILED: dict[tuple[Any, ...], Any] = {}


def _launch(kernel: Any, of: tuple[Any, ...], programs: int, *args: Any) -> None:
    """Launch a kernel on the current GPU, reusing the compiled kernel for equal specialisations.

    `of` holds everything, except the GPU, that decides which kernel Triton compiles for these arguments. Triton itself
    would inspect every argument on each launch, which takes longer than the launch.
    """
    key = (id(kernel), torch._C._cuda_getDevice() if args[0].is_cuda else None, *of)
    compiled = _COMPILED.get(key)
    if compiled is None:
        launched = kernel[programs,](*args)  # None if kernels are interpreted
        # For AMD GPUs Triton also specialises on storage sizes, so the key would be incomplete.
        _COMPILED[key] = None if torch.version.hip else launched
    else:
        compiled[programs, 1, 1](*args)


def _programs(size: int) -> int:
    return -(-size // (BLOCK * BLOCKS))
