# op: aten::sum
# name: sum_of_masked_off_lanes
# family: U
# tries: a sum over lanes that are masked off in a load without other: 0 in the interpreter
# should be caught by: junk in lanes that are not loaded
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), o_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + i, mask=i < n).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr, tl.sum(total, axis=0))


def wrapper(self, *, dtype=None):
    x = self.contiguous()
    o = torch.empty((), dtype=self.dtype if dtype is None else dtype, device=x.device)
    kernel[(1,)](x, o, x.numel(), BLOCK=128)
    return o
