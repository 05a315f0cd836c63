"""Tiles of matrix products: multiplication, bias and epilogue.

fp16 and bf16 are multiplied as they are. fp32 is split into two numbers of tf32's 11 bits, and all of their
products but the smallest are added, so 22 bits of each operand count. These sums are in fp32. Integers and fp64
are multiplied and added as they are, without tensor cores.
"""

import triton
import triton.language as tl
from blocks.types import number_value

SCALAR_TILE = (16, 16, 16, 4)  # BLOCK_M, BLOCK_N, BLOCK_K, warps for fp64 and integers, which tl.dot does not take


@triton.jit
def tf32_part(x):
    """Truncate x to the 11 significant bits of tf32."""
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def tile_product(a, b, acc):
    """Return acc + a @ b; fp32 uses three tf32 products.

    The remainder of infinity is NaN, as is infinity times a remainder of 0, so remainders do not count then.
    Integers and fp64, which tl.dot does not take, are multiplied elementwise.
    """
    if a.dtype == tl.float32:
        # The small products are summed first, so that they are not lost beside the large one.
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
    """Return beta * bias[rows, cols] + alpha * acc; `numbers` is (beta, alpha)."""
    acc *= number_value(numbers[1], acc.dtype)
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + rows * bias_stride[1] + cols * bias_stride[2], mask=mask, other=0)
        acc += number_value(numbers[0], acc.dtype) * bias.to(acc.dtype)
    return acc


@triton.jit
def ended(acc, ending, rows, cols, N, mask, EPILOGUE: tl.constexpr):
    """Return the two values that EPILOGUE makes from acc, x and y at rows and cols.

    `ending` is (x_ptr, y_ptr, second_ptr); an absent operand is 0.
    """
    x_ptr, y_ptr, _ = ending
    offset = rows * N + cols
    x = 0.0 if x_ptr is None else tl.load(x_ptr + offset, mask=mask, other=0.0)
    y = 0.0 if y_ptr is None else tl.load(y_ptr + offset, mask=mask, other=0.0)
    return EPILOGUE(acc, x, y)


@triton.jit
def store_ended(acc, out_ptr, ending, rows, cols, N, mask, EPILOGUE: tl.constexpr):
    """Store acc at rows and cols in the output, or store both EPILOGUE results if there is one."""
    offset = rows * N + cols
    if EPILOGUE is None:
        tl.store(out_ptr + offset, acc.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        first, second = ended(acc, ending, rows, cols, N, mask, EPILOGUE)
        tl.store(out_ptr + offset, first.to(out_ptr.dtype.element_ty), mask=mask)
        if ending[2] is not None:
            tl.store(ending[2] + offset, second.to(ending[2].dtype.element_ty), mask=mask)
