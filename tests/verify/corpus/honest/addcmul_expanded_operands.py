# op: addcmul
# honest-but-unusual: three operands broadcast by expand, so strides are 0 and no operand is ever copied; the factor is a number
# that the kernel gets as an argument; integers stay integers.


@triton.jit
def strided(i, shape, stride):
    """Offset of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    return offset


@triton.jit
def kernel_addcmul(a_ptr, x_ptr, y_ptr, o_ptr, n, value, shape, strides_a, xs, ys, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + strided(i, shape, strides_a), mask=i < n, other=0)
    x = tl.load(x_ptr + strided(i, shape, xs), mask=i < n, other=0)
    y = tl.load(y_ptr + strided(i, shape, ys), mask=i < n, other=0)
    kind = o_ptr.dtype.element_ty
    wide = tl.float32 if kind.is_floating() else kind
    tl.store(o_ptr + i, (a.to(wide) + value * (x.to(wide) * y.to(wide))).to(kind), mask=i < n)


def wrapper(input, tensor1, tensor2, *, value=1):
    shape = torch.broadcast_shapes(input.shape, tensor1.shape, tensor2.shape)
    views = [t.expand(shape) for t in (input, tensor1, tensor2)]
    kind = torch.promote_types(torch.result_type(input, tensor1), tensor2.dtype)
    o = torch.empty(shape, dtype=kind, device=input.device)
    n = o.numel()
    if n:
        strides = [v.stride() for v in views]
        kernel_addcmul[(triton.cdiv(n, 512),)](*views, o, n, value, tuple(shape), *strides, BLOCK=512)
    return o
