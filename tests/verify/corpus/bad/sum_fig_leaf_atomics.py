# op: aten::sum
# name: sum_fig_leaf_atomics
# family: P
# tries: plain load and store between two atomics that order nothing
# should be caught by: races, a program running in the midst of another
# outcome: WRONG
# layer: access, repeat


@triton.jit
def kernel(x_ptr, o_ptr, c_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0).to(o_ptr.dtype.element_ty), axis=0)
    tl.atomic_add(c_ptr, 1)
    tl.store(o_ptr, tl.load(o_ptr) + part)
    tl.atomic_add(c_ptr, 1)

def wrapper(self, *, dtype=None):
    x = self.contiguous()
    o = torch.zeros((), dtype=self.dtype if dtype is None else dtype, device=x.device)
    n = x.numel()
    if n:
        c = torch.zeros((1,), dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(n, 128),)](x, o, c, n, BLOCK=128)
    return o
