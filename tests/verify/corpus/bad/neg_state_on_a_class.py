# op: neg
# name: neg_state_on_a_class
# family: G
# tries: a class attribute holds the buffer that every call returns
# should be caught by: lint (class); results that share memory
# outcome: CHEAT|WRONG
# layer: lint, alias


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, -x, mask=i < n)


class Pool:
    buffers = {}


def wrapper(input):
    x = input.contiguous()
    o = Pool.buffers.setdefault(tuple(x.shape), torch.empty_like(x))
    n = x.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
