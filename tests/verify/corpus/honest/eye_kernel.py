# op: eye
# name: eye_kernel
# technique: factory with 2-D grid


@triton.jit
def eye_kernel(o_ptr, n, m, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)[:, None]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    tl.store(o_ptr + r * m + c, (r == c).to(o_ptr.dtype.element_ty), mask=(r < n) & (c < m))


def wrapper(n, m=None, *, out=None, dtype=None, layout=torch.strided, device=None, requires_grad=False, pin_memory=False):
    m = n if m is None else m
    o = torch.empty((n, m), dtype=dtype or torch.get_default_dtype(), device=device)
    if n and m:
        eye_kernel[(triton.cdiv(n, 16), triton.cdiv(m, 16))](o, n, m, BR=16, BC=16)
    return o
