# op: full
# name: full_factory
# technique: factory


@triton.jit
def full_kernel(o_ptr, v, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.zeros((BLOCK,), o_ptr.dtype.element_ty) + v, mask=i < n)


def wrapper(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    if dtype is None:
        dtype = torch.bool if isinstance(fill_value, bool) else torch.int64 if isinstance(fill_value, int) else torch.get_default_dtype()
    o = torch.empty(size, dtype=dtype, device=device)
    if o.numel() > 0:
        full_kernel[(triton.cdiv(o.numel(), 128),)](o, fill_value, o.numel(), BLOCK=128)
    return o
