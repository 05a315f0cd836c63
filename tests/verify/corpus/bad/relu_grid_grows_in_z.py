# op: nn.functional.relu
# name: relu_grid_grows_in_z
# family: G
# tries: a program in z for every 256 elements, of which a launch has 65,535 at most
# should be caught by: cost: how a grid grows with the elements
# outcome: RUNTIME_ERROR
# layer: cost


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(2).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.maximum(x, 0, propagate_nan=tl.PropagateNan.ALL), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        kernel[(1, 1, triton.cdiv(x.numel(), 256))](x, o, x.numel(), BLOCK=256)
    return o
