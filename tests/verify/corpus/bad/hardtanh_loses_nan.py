# op: nn.functional.hardtanh
# name: hardtanh_loses_nan
# family: F
# tries: comparison chain: NaN becomes min_val
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, min_val, max_val, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.where(x > max_val, max_val, tl.where(x > min_val, x, min_val))
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, min_val=-1.0, max_val=1.0, inplace=False):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, min_val, max_val, BLOCK=128)
    return o
