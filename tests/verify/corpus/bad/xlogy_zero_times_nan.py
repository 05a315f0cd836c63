# op: xlogy
# name: xlogy_zero_times_nan
# family: F
# tries: 0 wherever x is 0, also where y is NaN
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=1)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    y = tl.where(a == 0, 0.0, a * tl.log(b))
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, other):
    a, b = torch.broadcast_tensors(input, other)
    a, b = a.contiguous(), b.contiguous()
    o = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = a.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, BLOCK=128)
    return o
