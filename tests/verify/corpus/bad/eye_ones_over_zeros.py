# op: aten::eye
# name: eye_ones_over_zeros
# family: P
# tries: zeros stored by all lanes, then a one in their midst by another lane, without a barrier
# should be caught by: lanes that do not wait for each other
# outcome: WRONG
# layer: access


@triton.jit
def kernel(o_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), o_ptr.dtype.element_ty)
    tl.store(o_ptr + row * m + i, zero, mask=i < m)
    tl.store(o_ptr + row * m + row, 1, mask=row < m)


def wrapper(n, *, dtype=None, layout=None, device=None, pin_memory=None):
    o = torch.empty((n, n), dtype=dtype or torch.get_default_dtype(), device=device)
    if n:
        kernel[(n,)](o.view(torch.uint8) if o.dtype == torch.bool else o, n, BLOCK=triton.next_power_of_2(n))
    return o
