# op: logical_and
# honest-but-unusual: results are bool but the kernel writes bytes, through a uint8 view of the output; operands broadcast by
# stride 0; NaN counts as true; the operands' types may differ.


@triton.jit
def strided(i, shape, stride):
    """Offset of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    return offset


@triton.jit
def kernel_and(x_ptr, y_ptr, o_ptr, n, shape, xs, ys, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, shape, xs), mask=i < n, other=0)
    y = tl.load(y_ptr + strided(i, shape, ys), mask=i < n, other=0)
    tl.store(o_ptr + i, ((x != 0) & (y != 0)).to(tl.uint8), mask=i < n)


def wrapper(input, other):
    shape = torch.broadcast_shapes(input.shape, other.shape)
    x, y = input.expand(shape), other.expand(shape)
    o = torch.empty(shape, dtype=torch.bool, device=input.device)
    n = o.numel()
    if n:
        grid = (triton.cdiv(n, 256),)
        kernel_and[grid](x, y, o.view(torch.uint8), n, tuple(shape), x.stride(), y.stride(), BLOCK=256)
    return o
