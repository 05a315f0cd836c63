# op: remainder
# name: remainder_keeps_divisor
# family: F
# tries: r + b where signs differ, also where r is zero
# should be caught by: compare: value regime 'multiples of 1/2' (ties, halves, zeros beside others)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=1)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    q = a / b
    r = a - b * tl.where(q < 0, tl.ceil(q), tl.floor(q))
    y = tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, tl.where((r == 0) & ((a < 0) != (b < 0)), b, r))
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, other):
    a, b = torch.broadcast_tensors(input, other)
    a, b = a.contiguous(), b.contiguous()
    o = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = a.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, BLOCK=128)
    return o
