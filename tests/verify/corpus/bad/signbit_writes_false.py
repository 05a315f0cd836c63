# op: signbit
# name: signbit_writes_false
# family: H
# tries: True is left to the memory
# should be caught by: compare: repeat with fresh memory filled with another pattern than NaN/True/INT_MAX
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x * 0 == 1, mask=(i < n) & ((x.to(tl.int32, bitcast=True) >= 0)))


def wrapper(input):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
