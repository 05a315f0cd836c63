# op: where
# name: where_promoting
# technique: three-way broadcast by expand and flat copy, dtype promotion, condition bytes


@triton.jit
def where_kernel(c_ptr, a_ptr, b_ptr, o_ptr, numel, BLOCK: tl.constexpr):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = idx < numel
    c = tl.load(c_ptr + idx, mask=live, other=0).to(tl.int1)
    a = tl.load(a_ptr + idx, mask=live, other=0).to(o_ptr.dtype.element_ty)
    b = tl.load(b_ptr + idx, mask=live, other=0).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + idx, tl.where(c, a, b), mask=live)


def as_tensor(value, device):
    if isinstance(value, torch.Tensor):
        return value
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.get_default_dtype()
    return torch.full((), value, dtype=dtype, device=device)


def wrapper(condition, input, other, *, out=None):
    dtype = torch.result_type(input, other)
    x, y = as_tensor(input, condition.device), as_tensor(other, condition.device)
    c, x, y = torch.broadcast_tensors(condition, x, y)
    c, x, y = c.contiguous(), x.contiguous(), y.contiguous()
    o = torch.empty(c.shape, dtype=dtype, device=c.device)
    if o.numel() == 0:
        return o
    where_kernel[(triton.cdiv(o.numel(), 128),)](c, x, y, o, o.numel(), BLOCK=128)
    return o
