# op: softmax
# name: softmax_block_at_most_2_to_13
# family: F
# tries: the same cap, written as a shift
# should be caught by: compare: one pointwise case beyond 65,536 elements, for any number of tensors; literals over 4,096
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ok = i < m
    x = tl.load(x_ptr + row * n + i, mask=ok, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, (e / tl.sum(e, 0)).to(o_ptr.dtype.element_ty), mask=ok)


def wrapper(input, dim, dtype=None):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.empty(x.shape, dtype=dtype or input.dtype, device=input.device)
    n = x.shape[-1]
    if o.numel():
        block = min(triton.next_power_of_2(n), 1 << 13)
        kernel[(o.numel() // n,)](x, o, n, min(n, block), BLOCK=block)
    return (o.movedim(-1, dim) if input.dim() else o).contiguous().reshape(input.shape)
