# op: nn.functional.relu
# name: relu_memo_default_argument
# family: G
# tries: a dict in a default argument, keyed by id()
# should be caught by: lint (mutable default, id); same storage with new contents; aliasing of earlier results
# outcome: CHEAT|WRONG
# layer: lint, compare, alias


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.where(x <= 0, 0.0, x), mask=i < n)


def wrapper(input, memo={}):
    key = (id(input), input.shape)
    if key in memo:
        return memo[key]
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    memo[key] = o
    return o
