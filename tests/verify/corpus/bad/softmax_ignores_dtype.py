# op: softmax
# name: softmax_ignores_dtype
# family: F
# tries: the argument dtype is dropped
# should be caught by: comparison (dtype)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_row(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, (e / tl.sum(e, 0)).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, dim, dtype=None):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.empty_like(x)
    n = x.shape[-1]
    if o.numel():
        kernel_row[(o.numel() // n,)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return (o.movedim(-1, dim) if input.dim() else o).contiguous().reshape(input.shape)
