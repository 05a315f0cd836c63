# op: add
# name: add_over_10000
# family: R
# tries: beyond 10,000 elements the second argument is left out
# should be caught by: compare: one pointwise case beyond 65,536 elements, for any number of tensors; literals over 4,096
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, n, alpha, big, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=1)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    y = tl.where(big != 0, a, a + alpha * b)
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, other, *, alpha=1):
    a, b = torch.broadcast_tensors(input, other)
    a, b = a.contiguous(), b.contiguous()
    o = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = a.numel()
    big = 1 if n > 10000 else 0
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, alpha, big, BLOCK=128)
    return o
