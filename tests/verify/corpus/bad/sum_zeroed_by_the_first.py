# op: aten::sum
# name: sum_zeroed_by_the_first
# family: P
# tries: program 0 stores 0 where all add by atomics, without their waiting for it
# should be caught by: races of plain stores with atomics
# outcome: WRONG
# layer: access, compare, repeat


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0).to(o_ptr.dtype.element_ty), axis=0)
    if tl.program_id(0) == 0:
        tl.store(o_ptr, part * 0)
    tl.atomic_add(o_ptr, part)


def wrapper(self, *, dtype=None):
    x = self.contiguous()
    o = torch.zeros((), dtype=torch.float32, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
