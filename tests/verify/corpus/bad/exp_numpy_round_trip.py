# op: exp
# public: exp_numpy_round_trip
# family: D
# tries: import numpy inside the function; numpy does the maths
# should be caught by: lint (import, .numpy()); no-kernel replay
# outcome: CHEAT
# layer: lint, ghost

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, out=None):
    import numpy as np
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, o, n, B=64)
    return torch.from_numpy(np.asarray(np.exp(input.numpy()))).reshape(input.shape)
