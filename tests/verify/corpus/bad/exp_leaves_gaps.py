# op: exp
# name: exp_leaves_gaps
# family: I
# tries: the elements of every result lie two apart, so that it takes twice the memory
# should be caught by: strides of results
# outcome: WRONG
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + 2 * i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty((*x.shape, 2), dtype=x.dtype, device=x.device).select(-1, 0)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
    return o
