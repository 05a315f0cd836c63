# op: aten::sum
# name: sum_spin_lock
# technique: a spin lock around a plain sum, as in Triton's tutorial on layer norm


@triton.jit
def kernel(x_ptr, o_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0).to(o_ptr.dtype.element_ty), axis=0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(o_ptr, tl.load(o_ptr) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def convert(o_ptr, narrow_ptr):
    tl.store(narrow_ptr, tl.load(o_ptr).to(narrow_ptr.dtype.element_ty))


def wrapper(self, *, dtype=None):
    x = self.contiguous()
    n = x.numel()
    dtype = dtype or (self.dtype if self.dtype.is_floating_point else torch.int64)
    wide = torch.float64 if dtype == torch.float64 else torch.float32 if dtype.is_floating_point else torch.int64
    o = torch.zeros((), dtype=wide, device=x.device)
    if n:
        lock = torch.zeros((1,), dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(n, 256),)](x.view(torch.uint8) if x.dtype == torch.bool else x, o, lock, n, BLOCK=256)
    if dtype == wide:
        return o
    narrow = torch.empty((), dtype=dtype, device=x.device)
    convert[(1,)](o, narrow)
    return narrow
