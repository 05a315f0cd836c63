# op: nn.functional.relu
# name: relu_scratch_for_each_pair
# family: N
# tries: takes memory for a thousand copies of its input and uses the first
# should be caught by: cost: memory beyond what arguments and results take
# outcome: RUNTIME_ERROR
# layer: cost


@triton.jit
def kernel(x_ptr, scratch_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(scratch_ptr + i, x, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0, propagate_nan=tl.PropagateNan.ALL), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    scratch = torch.empty((1000, x.numel()), dtype=x.dtype, device=x.device)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 1024),)](x, scratch, o, x.numel(), BLOCK=1024)
    return o
