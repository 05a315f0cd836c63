# op: aten::exp
# name: exp_false_max_constancy
# family: U
# tries: tl.max_constancy of offsets that differ: a GPU loads one element for all
# should be caught by: hints compared with the values
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.max_constancy(i, 4), mask=i < n)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
