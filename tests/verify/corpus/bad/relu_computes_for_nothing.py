# op: nn.functional.relu
# name: relu_computes_for_nothing
# family: N
# tries: sums a series of forty thousand terms that no result depends on
# should be caught by: cost: seconds in the interpreter that no access explains
# outcome: TIMEOUT
# layer: cost


@triton.jit
def kernel(x_ptr, o_ptr, n, terms, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    total = 0
    for k in range(0, terms):
        total += k & 1
    tl.store(o_ptr + i, tl.maximum(x, tl.where(total < 0, x, 0), propagate_nan=tl.PropagateNan.ALL), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), 40000, BLOCK=1024)
    return o
