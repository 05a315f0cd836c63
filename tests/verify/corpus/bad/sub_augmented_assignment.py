# op: sub
# name: sub_augmented_assignment
# family: C
# tries: clones (which is allowed) and subtracts in place
# should be caught by: lint; dispatch guard (aten::sub_)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, other, *, alpha=1):
    o = input.clone()
    if isinstance(other, torch.Tensor):
        other = other.expand(torch.broadcast_shapes(input.shape, other.shape))
        o = input.expand(other.shape).clone()
    scaled = alpha * other
    o -= scaled
    return o
