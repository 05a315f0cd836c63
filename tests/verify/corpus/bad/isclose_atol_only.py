# op: isclose
# name: isclose_atol_only
# family: F
# tries: the relative part is dropped
# should be caught by: compare: value regime 'multiples of 1/2' (ties, halves, zeros beside others)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, n, atol, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=1)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    y = tl.abs(a - b) <= atol
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    a, b = torch.broadcast_tensors(input, other)
    a, b = a.contiguous(), b.contiguous()
    o = torch.empty(a.shape, dtype=torch.bool, device=a.device)
    n = a.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, atol, BLOCK=128)
    return o
