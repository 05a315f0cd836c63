"""aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) ->
    Tensor

Up to FEW_TESTS test elements are compared with every element. If there are more, they are sorted by their bits,
with equal floats mapped to equal bits. A binary search then looks up each element.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.offsets import strided, walk
from blocks.radix import sort_keys
from blocks.types import common_dtype, compute_types, convert

OVERLOADS = ("aten::isin.Tensor_Tensor",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

FEW_TESTS = 64  # largest number of test elements for one-by-one comparison


@triton.jit
def key_of(x, BITS: tl.constexpr):
    """Return a value's bits as an int64 key, which is the same for +0 and -0."""
    if x.dtype.is_fp64():
        return tl.where(x == 0, 0, x.to(tl.int64, bitcast=True))
    if x.dtype.is_fp32():
        return tl.where(x == 0, 0, x.to(tl.int32, bitcast=True)).to(tl.int64) & 0xFFFFFFFF
    return x.to(tl.int64) if BITS == 64 else x.to(tl.int64) & ((1 << BITS) - 1)


@triton.jit
def key16(x):
    return key_of(x, 16)


@triton.jit
def key64(x):
    return key_of(x, 64)


@triton.jit
def key32(x):
    return key_of(x, 32)


@triton.jit
def isin_kernel(
    x_ptr,
    tests_ptr,
    out_ptr,
    n,
    count,
    depth,
    steps,
    test_steps,
    INVERT: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Test BLOCK elements per program instance.

    Args:
        x_ptr: [n] elements, read.
        tests_ptr: [count] test elements, read. With BITS > 0, contiguous sorted keys instead.
        out_ptr: [n] bool, contiguous, written.
        n: Number of elements.
        count: Number of test elements.
        depth: Binary search steps for `count` keys.
        steps: (shape, strides) of the elements, from `walk`.
        test_steps: (shape, strides) of the test elements, from `walk`.
        INVERT: Store True for elements that are not among the test elements.
        COMMON: Common Triton type of elements and test elements.
        OPMATH: Triton type in which they are compared.
        BITS: Width of the sorted keys (see `key_of`), or 0 to compare with the test elements one by one.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = convert(tl.load(x_ptr + strided(i, steps[0], steps[1][0], False, False), mask=i < n, other=0), COMMON)
    x = x.to(OPMATH)
    is_member = i < 0  # False in every lane
    if BITS == 0:
        for k in range(count):
            test_offset = strided(k + tl.zeros([1], tl.int64), test_steps[0], test_steps[1][0], False, False)
            is_member = is_member | (x == convert(tl.load(tests_ptr + test_offset), COMMON).to(OPMATH))
    else:
        LEAST: tl.constexpr = -0x8000000000000000 if BITS == 64 else 0  # keys sort as unsigned integers
        key = key_of(x, BITS)
        low, high = tl.zeros_like(i), tl.zeros_like(i) + count
        for _ in range(depth):
            middle = (low + high) // 2
            going = (low < high) & (i < n)
            before = (tl.load(tests_ptr + middle, mask=going, other=0).to(tl.int64) ^ LEAST) < (key ^ LEAST)
            low = tl.where(going & before, middle + 1, low)
            high = tl.where(going & ~before, middle, high)
        inside = (low < count) & (i < n)
        # NaN equals nothing, but two NaNs may have the same key.
        is_member = inside & (tl.load(tests_ptr + low, mask=inside, other=0) == key) & (x == x)
    tl.store(out_ptr + i, ~is_member if INVERT else is_member, mask=i < n)


def wrapper(elements, test_elements, *, assume_unique=False, invert=False):
    if elements.dtype == torch.bool or test_elements.dtype == torch.bool:
        raise RuntimeError("isin does not support bool")
    common = common_dtype(elements, test_elements)
    out = torch.empty(elements.shape, dtype=torch.bool, device=elements.device)
    n, count, tests, bits = elements.numel(), test_elements.numel(), test_elements, 0
    if count > FEW_TESTS:
        bits = {torch.int8: 16, torch.uint8: 16, torch.int16: 16, torch.int64: 64, torch.float64: 64}.get(common, 32)
        bit_keys = elementwise({16: key16, 32: key32, 64: key64}[bits], test_elements, common=common, dtype=torch.int64)
        tests, _ = sort_keys(bit_keys, 2**bits)
    COMMON, OPMATH = compute_types(common)
    if n:
        isin_kernel[(triton.cdiv(n, 512),)](
            elements,
            tests,
            out,
            n,
            count,
            len([k for k in range(63) if count >> k]),  # bits of count: each step halves the interval
            walk([elements], range(elements.dim()), False),
            walk([test_elements], range(test_elements.dim()), False),
            INVERT=invert,
            COMMON=COMMON,
            OPMATH=OPMATH,
            BITS=bits,
            BLOCK=512,
            num_warps=4,
        )
    return out
