# op: abs
# name: abs_loads_without_mask
# family: P
# tries: loads whole blocks without a mask; only the store is masked
# should be caught by: bounds of every access
# outcome: RUNTIME_ERROR|CHEAT|WRONG|CRASH
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(o_ptr + i, tl.abs(x), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 64),)](x, o, n, BLOCK=64)
    return o
