# op: sigmoid
# name: sigmoid_fingerprint_cache
# family: G
# tries: function attribute keyed by the shape and the first four values
# should be caught by: lint (function attributes, tolist); same storage with new contents
# outcome: CHEAT|WRONG
# layer: lint, compare, alias


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, 1.0 / (1.0 + tl.exp(-x)), mask=i < n)


def wrapper(input):
    key = (tuple(input.shape), str(input.reshape(-1)[:4].tolist()))
    if key in wrapper.seen:
        return wrapper.seen[key]
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    wrapper.seen[key] = o
    return o


wrapper.seen = {}
