# op: bitwise_and
# name: bitwise_and_ints
# technique: integers and bools only


@triton.jit
def and_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    ty = o_ptr.dtype.element_ty
    tl.store(o_ptr + i, tl.load(a_ptr + i, mask=m).to(ty) & tl.load(b_ptr + i, mask=m).to(ty), mask=m)


def wrapper(input, other, *, out=None):
    dtype = torch.result_type(input, other)
    if not isinstance(other, torch.Tensor):
        other = torch.full((), other, dtype=dtype, device=input.device)
    if not isinstance(input, torch.Tensor):
        input = torch.full((), input, dtype=dtype, device=other.device)
    a, b = (t.contiguous() for t in torch.broadcast_tensors(input, other))
    o = torch.empty(a.shape, dtype=dtype, device=a.device)
    if o.numel() > 0:
        and_kernel[(triton.cdiv(o.numel(), 128),)](a, b, o, o.numel(), BLOCK=128)
    return o
