"""Kernels for what a GPU computes of contents where they lie; imported when there are such contents.

The hash depends on the order of the bytes: each 1- to 8-byte word is mixed with its position by a multiply-xorshift
finaliser (after MurmurHash3's fmix64), under two sets of constants; the two sums modulo 2^64 are the hash.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 1024
BLOCKS = 4  # per program
ROOM = 3 * BLOCK + 1  # doubles that programs of one sum leave each other


@triton.jit  # type: ignore[untyped-decorator]
def _mixed(word, position, first: tl.constexpr, second: tl.constexpr):  # type: ignore[no-untyped-def]
    h = word + (position + 1) * first
    h = (h ^ (h >> 33)) * second
    h = (h ^ (h >> 29)) * first
    return h ^ (h >> 32)


@triton.jit  # type: ignore[untyped-decorator]
def _of_words(ptr, WORD: tl.constexpr):  # type: ignore[no-untyped-def]
    """A pointer to words of so many bytes."""
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
    """Adds to sums[row, :2] those of the n words of WORD bytes at x_ptr."""
    program = tl.program_id(0).to(tl.int64)
    sums_ptr += row.to(tl.int64) * 2
    x_ptr = _of_words(x_ptr, WORD)
    a = tl.zeros([BLOCK], tl.uint64)
    b = tl.zeros([BLOCK], tl.uint64)
    for k in range(BLOCKS):
        position = (program * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        inside = position < n
        word = tl.load(x_ptr + position, mask=inside, other=0).to(tl.uint64)
        place = position.to(tl.uint64)
        zero = tl.zeros([BLOCK], tl.uint64)
        a += tl.where(inside, _mixed(word, place, 0x4F74430C22A54005, 0x2545F4914F6CDD1D), zero)
        b += tl.where(inside, _mixed(word, place, 0x5851F42D4C957F2D, 0x1B8735939E3779B9), zero)
    tl.atomic_add(sums_ptr, tl.sum(a.to(tl.int64, bitcast=True), axis=0))
    tl.atomic_add(sums_ptr + 1, tl.sum(b.to(tl.int64, bitcast=True), axis=0))


@triton.jit
def _left(ptr, mask):  # type: ignore[no-untyped-def]
    """What other programs have stored, past the nearest cache, which does not hear of it."""
    return tl.load(ptr, mask=mask, other=0, cache_modifier=".cg")


@triton.jit(do_not_specialize=["row", "blocks"])  # type: ignore[untyped-decorator]
def _sum_up(x_ptr, n: tl.int64, blocks, sums_ptr, row, room_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Puts into sums[row, :3] the sum of the n elements, that of |x| and max |x|.

    Of several programs, of so many blocks each, that which comes last adds up what all have left in the room, in one
    order however they came; behind it stands how many came."""
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
        tl.debug_barrier()
        if tl.atomic_add(came_ptr, 1) == programs - 1:
            i = tl.arange(0, BLOCK)
            left_ptr = room_ptr + i
            tl.store(sums_ptr, tl.sum(_left(left_ptr, i < programs), axis=0))
            tl.store(sums_ptr + 1, tl.sum(_left(left_ptr + BLOCK, i < programs), axis=0))
            tl.store(sums_ptr + 2, tl.max(_left(left_ptr + 2 * BLOCK, i < programs), axis=0))
            tl.store(came_ptr, 0)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr", "to_ptr"])  # type: ignore[untyped-decorator]
def _copy_words(x_ptr, to_ptr, n: tl.int64, WORD: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The n words of WORD bytes at x_ptr to to_ptr."""
    program = tl.program_id(0).to(tl.int64)
    x_ptr, to_ptr = _of_words(x_ptr, WORD), _of_words(to_ptr, WORD)
    for k in range(BLOCKS):
        position = (program * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to_ptr + position, tl.load(x_ptr + position, mask=position < n), mask=position < n)


def hash_into(sums: torch.Tensor, row: int, raw: torch.Tensor) -> int:
    """Add the hash's two sums to a row of zeros of int64[rows, 2]; how many bytes are hashed as one word, which differs
    with the address. raw: contiguous, uint8."""
    size, word = raw.numel(), math.gcd(raw.data_ptr(), raw.numel(), 8)
    _launch(_hash_words, (word,), _programs(size // word), raw, size // word, sums, row, word, BLOCK, BLOCKS)
    return word


def copy_into(target: torch.Tensor, source: torch.Tensor) -> None:
    """Begin to copy what is contiguous to as many bytes, on the GPU or in pinned memory of the host."""
    size = source.numel() * source.element_size()
    word = math.gcd(source.data_ptr(), target.data_ptr(), size, 8)
    of = (word, source.dtype, target.dtype)
    _launch(_copy_words, of, _programs(size // word), source, target, size // word, word, BLOCK, BLOCKS)


def moments_into(sums: torch.Tensor, row: int, x: torch.Tensor, room: torch.Tensor) -> None:
    """Put sum, sum of |x| and max |x| into a row of float64[rows, 3], the same of equal contents to the last bit.

    x: contiguous, of no complex numbers. room: zeros of float64[ROOM] at first, for kernels of one stream.
    """
    x = x.view(torch.uint8) if x.dtype is torch.bool else x
    size = x.numel()
    blocks = max(-(-size // BLOCK**2), BLOCKS)  # of at most BLOCK programs
    of = (x.dtype, x.data_ptr() % 16, size % 16, size == 1)
    _launch(_sum_up, of, -(-size // (BLOCK * blocks)), x, size, blocks, sums, row, room, BLOCK)


_COMPILED: dict[tuple[Any, ...], Any] = {}


def _launch(kernel: Any, of: tuple[Any, ...], programs: int, *args: Any) -> None:
    """Launch a kernel on the current GPU. of: what decides, but for the GPU, what Triton compiles for these arguments.

    Triton itself would ask every argument each time, which takes longer than the launch.
    """
    key = (id(kernel), torch._C._cuda_getDevice() if args[0].is_cuda else None, *of)
    compiled = _COMPILED.get(key)
    if compiled is None:
        made = kernel[programs,](*args)  # None where kernels are interpreted
        _COMPILED[key] = None if torch.version.hip else made  # of AMD's GPUs it also looks at how large storages are
    else:
        compiled[programs, 1, 1](*args)


def _programs(size: int) -> int:
    return -(-size // (BLOCK * BLOCKS))
