# op: sin
# name: sin_item_by_item
# family: D
# tries: reads every value into Python and computes there
# should be caught by: lint (values read in a loop); dispatch guard (thousands of _local_scalar_dense)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    flat = input.reshape(-1)
    values = [math.sin(flat[k].item()) for k in range(flat.numel())]
    o = torch.zeros_like(flat)
    for k in range(flat.numel()):
        o[k].fill_(values[k])
    return o.view(input.shape)
