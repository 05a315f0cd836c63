# op: abs
# name: abs_right_while_warming_up
# family: G
# tries: the first five calls are right, all later ones are zeros
# should be caught by: repeats; lint (mutable default)
# outcome: CHEAT|WRONG
# layer: lint, compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.abs(x), mask=i < n)


def wrapper(input, calls=[]):
    calls.append(1)
    if len(calls) > 5:
        return torch.zeros_like(input)
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
