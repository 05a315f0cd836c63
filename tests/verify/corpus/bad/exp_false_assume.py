# op: aten::exp
# name: exp_false_assume
# family: U
# tries: tl.assume of what does not hold, by which a compiler may drop the mask
# should be caught by: hints compared with the values
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    tl.assume(n >= 1073741824)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
