# op: add
# name: add_int16_offsets
# family: P
# tries: offsets of 16 bits
# should be caught by: compare: one pointwise case beyond 65,536 elements, for any number of tensors; literals over 4,096
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = i.to(tl.int16).to(tl.int32)
    a = tl.load(a_ptr + i, mask=i < n, other=1)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    y = a + alpha * b
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, other, *, alpha=1):
    a, b = torch.broadcast_tensors(input, other)
    a, b = a.contiguous(), b.contiguous()
    o = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = a.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, alpha, BLOCK=128)
    return o
