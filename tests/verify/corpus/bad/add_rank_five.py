# op: add
# name: add_rank_five
# family: R
# tries: tensors of five dimensions lose the second argument
# should be caught by: compare: tensors of more dimensions (unsqueezed at both ends)
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
    big = 1 if a.dim() > 4 else 0
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, alpha, big, BLOCK=128)
    return o
