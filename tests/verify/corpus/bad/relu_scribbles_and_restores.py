# op: nn.functional.relu
# name: relu_scribbles_and_restores
# family: H
# tries: the argument is zeroed and restored by the wrapper
# should be caught by: version counters of arguments
# outcome: WRONG
# layer: types

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.where(x < 0.0, 0.0, x)
    tl.store(o_ptr + i, y, mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
    if n and 0 not in self.stride():
        kept = self.clone()
        self.detach().fill_(0)
        self.detach().copy_(kept)
    return o
