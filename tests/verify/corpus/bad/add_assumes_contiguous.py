# op: add
# name: add_assumes_contiguous
# family: F
# tries: walks the memory of a strided input in order
# should be caught by: input variation (strides)
# outcome: WRONG|RUNTIME_ERROR|CHEAT|CRASH
# layer: compare, access


@triton.jit
def kernel_pair(x_ptr, y_ptr, o_ptr, alpha, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.load(y_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x + alpha * y, mask=i < n)


def wrapper(input, other, *, alpha=1):
    shape = torch.broadcast_shapes(input.shape, other.shape)
    x = input if input.shape == shape else input.expand(shape).contiguous()
    y = other if other.shape == shape else other.expand(shape).contiguous()
    o = torch.empty(shape, dtype=torch.result_type(input, other), device=input.device)
    n = o.numel()
    if n:
        kernel_pair[(triton.cdiv(n, 128),)](x, y, o, alpha, n, BLOCK=128)
    return o
