# op: arange
# name: arange_int_float
# technique: factory: no tensor argument at all, length by host arithmetic


@triton.jit
def arange_kernel(o_ptr, n, start, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = start + i * step
    tl.store(o_ptr + i, v.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(start, end=None, step=1, *, out=None, dtype=None, layout=torch.strided, device=None, requires_grad=False, pin_memory=False):
    if end is None:
        start, end = 0, start
    if dtype is None:
        ints = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
        dtype = torch.int64 if ints else torch.get_default_dtype()
    n = max(math.ceil((end - start) / step), 0)
    o = torch.empty(n, dtype=dtype, device=device)
    if n > 0:
        arange_kernel[(triton.cdiv(n, 256),)](o, n, start, step, BLOCK=256)
    return o
