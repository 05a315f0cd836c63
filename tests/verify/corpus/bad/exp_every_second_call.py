# op: exp
# name: exp_every_second_call
# family: G
# tries: counts its calls; every second one returns the buffer of the call before
# should be caught by: lint (state on a function); repeats; aliasing of earlier results
# outcome: CHEAT|WRONG
# layer: lint, compare, alias


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n)


def wrapper(input):
    wrapper.calls += 1
    if wrapper.calls % 2 == 0 and wrapper.last.shape == input.shape:
        return wrapper.last
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    wrapper.last = o
    return o


wrapper.calls, wrapper.last = 0, torch.empty(0)
