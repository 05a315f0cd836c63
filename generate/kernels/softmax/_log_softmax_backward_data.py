"""aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor

grad - exp(output) * sum(grad): a program takes BLOCK_M rows. Rows that fit its registers are read once;
longer ones are summed in a first pass and written in a second.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_log_softmax_backward_data",)
DTYPES = ("bfloat16", "float16", "float32")


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
def load(x_ptr, mask):
    return tl.load(x_ptr, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def kernel_log_softmax_backward_data(
    grad_ptr,
    y_ptr,
    out_ptr,
    m,
    n,
    row_shape,
    grad_row_stride,
    grad_col_stride,
    y_row_stride,
    y_col_stride,
    out_row_stride,
    out_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    WHOLE: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    inside = (rows < m)[:, None]
    grad_ptr += strided(rows, row_shape, grad_row_stride)[:, None]
    y_ptr += strided(rows, row_shape, y_row_stride)[:, None]
    out_ptr += strided(rows, row_shape, out_row_stride)[:, None]
    if WHOLE:
        mask = inside & (lanes < n)
        grad = load(grad_ptr + lanes * grad_col_stride, mask)
        y = load(y_ptr + lanes * y_col_stride, mask)
        total = tl.sum(grad, 1)[:, None]
        out = grad - tl.exp(y) * total
        tl.store(out_ptr + lanes * out_col_stride, out.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, n, BLOCK_N):
            cols = start + lanes
            mask = inside & (cols < n)
            grad = load(grad_ptr + cols * grad_col_stride, mask)
            acc += grad
        total = tl.sum(acc, 1)[:, None]
        for start in range(0, n, BLOCK_N):
            cols = start + lanes
            mask = inside & (cols < n)
            grad = load(grad_ptr + cols * grad_col_stride, mask)
            y = load(y_ptr + cols * y_col_stride, mask)
            out = grad - tl.exp(y) * total
            tl.store(out_ptr + cols * out_col_stride, out.to(out_ptr.dtype.element_ty), mask=mask)


def walk(dim, *tensors):
    """Shape of the rows along dim and, of each tensor, strides of the rows and stride in a row: rows in one dimension
    where all tensors are contiguous and dim is their last."""
    x = tensors[0]
    if x.dim() == 0:
        return (), [((), 1)] * len(tensors)
    dim %= x.dim()
    if dim == x.dim() - 1 and all(t.is_contiguous() for t in tensors):
        return (x.numel() // max(x.shape[dim], 1),), [((x.shape[dim],), 1)] * len(tensors)
    kept = [d for d in range(x.dim()) if d != dim]
    return tuple(x.shape[d] for d in kept), [(tuple(t.stride(d) for d in kept), t.stride(dim)) for t in tensors]


def tile(m, n):
    """BLOCK_M, BLOCK_N and warps: rows of up to 4096 elements are held whole, of up to 1024 by one warp."""
    BLOCK_N = triton.next_power_of_2(max(n, 1))
    if BLOCK_N <= 1024:
        return min(triton.next_power_of_2(max(m, 1)), 1024 // BLOCK_N), BLOCK_N, 1
    return (1, BLOCK_N, BLOCK_N // 512) if BLOCK_N <= 4096 else (1, 4096, 8)


def wrapper(grad_output, output, dim, input_dtype):
    if grad_output.shape != output.shape:
        raise RuntimeError(f"gradient {tuple(grad_output.shape)} of a result {tuple(output.shape)}")
    out = torch.empty(output.shape, dtype=input_dtype, device=output.device)
    n = out.shape[dim] if out.dim() else 1
    m = out.numel() // max(n, 1)
    shape, (grad_strides, y_strides, out_strides) = walk(dim, grad_output, output, out)
    BLOCK_M, BLOCK_N, warps = tile(m, n)
    kernel_log_softmax_backward_data[(triton.cdiv(m, BLOCK_M),)](
        grad_output,
        output,
        out,
        m,
        n,
        shape,
        *grad_strides,
        *y_strides,
        *out_strides,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        WHOLE=n <= BLOCK_N,
        num_warps=warps,
    )
    return out
