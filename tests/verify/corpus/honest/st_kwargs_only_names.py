# op: addcmul
# name: st_kwargs_only_names
# technique: parameter names as in the documentation, *, value, out


@triton.jit
def addcmul_kernel(i_ptr, a_ptr, b_ptr, o_ptr, n, value, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = k < n
    i, a, b = tl.load(i_ptr + k, mask=m), tl.load(a_ptr + k, mask=m), tl.load(b_ptr + k, mask=m)
    if i.dtype.is_floating():
        i, a, b = i.to(tl.float32), a.to(tl.float32), b.to(tl.float32)
    tl.store(o_ptr + k, i + value * a * b, mask=m)


def wrapper(input, tensor1, tensor2, *, value=1, out=None):
    args = [t.contiguous() for t in torch.broadcast_tensors(input, tensor1, tensor2)]
    dtype = args[0].dtype
    for t in args[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    o = torch.empty(args[0].shape, dtype=dtype, device=input.device)
    n = o.numel()
    if n > 0:
        addcmul_kernel[(triton.cdiv(n, 128),)](*args, o, n, value, BLOCK=128)
    return o
