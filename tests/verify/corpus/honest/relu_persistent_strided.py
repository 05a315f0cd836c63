# op: nn.functional.relu
# honest-but-unusual: no copy of a strided input: the kernel turns a flat index into an offset by shape and strides passed as
# tuples; persistent grid of three programs; NaN goes through; the output has the input's own dense strides.


@triton.jit
def strided(i, shape, stride):
    """Offset of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    return offset


@triton.jit
def kernel_relu(x_ptr, o_ptr, n, shape, xs, os, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + strided(i, shape, xs), mask=i < n, other=0)
        tl.store(o_ptr + strided(i, shape, os), tl.where(x <= 0, tl.zeros_like(x), x), mask=i < n)


def wrapper(input):
    o = torch.empty_like(input)
    if input.numel():
        kernel_relu[(3,)](input, o, o.numel(), tuple(o.shape), input.stride(), o.stride(), BLOCK=128)
    return o
