"""aten::_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()

One launch a tensor: every element times the inverse scale, in fp32; a program that meets an infinity or NaN stores 1 to
found_inf, which nothing reads here, so the flag stays on the device.
"""

import triton
import triton.language as tl

OVERLOADS = ("aten::_amp_foreach_non_finite_check_and_unscale_",)
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
def kernel_unscale(grad_ptr, found_inf_ptr, inv_scale_ptr, n, shape, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    grad_ptr += strided(i, shape, stride)
    grad = tl.load(grad_ptr, mask=mask, other=0).to(tl.float32)
    finite = tl.abs(grad) < float("inf")  # False for NaN
    if tl.min(finite.to(tl.int32), 0) == 0:
        tl.store(found_inf_ptr, 1.0)
    out = grad * tl.load(inv_scale_ptr).to(tl.float32)
    tl.store(grad_ptr, out.to(grad_ptr.dtype.element_ty), mask=mask)


def wrapper(self, found_inf, inv_scale):
    for grad in self:
        n = grad.numel()
        if grad.is_contiguous():
            shape, stride = (n,), (1,)
        else:
            shape, stride = tuple(grad.shape), grad.stride()
        kernel_unscale[(triton.cdiv(n, 4096),)](grad, found_inf, inv_scale, n, shape, stride, BLOCK=4096, num_warps=8)
