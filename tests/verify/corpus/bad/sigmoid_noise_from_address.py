# op: sigmoid
# name: sigmoid_noise_from_address
# family: P
# tries: adds noise seeded with the address of the output: never the same twice
# should be caught by: repeats bit-equal; comparison; lint (id)
# outcome: WRONG|CHEAT
# layer: compare, lint


@triton.jit
def kernel(x_ptr, o_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = 1.0 / (1.0 + tl.exp(-x)) + (tl.rand(seed, i) - 0.5) * 0.002
    tl.store(o_ptr + i, y, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 64),)](x, o, o.numel(), id(o) % 65521, BLOCK=64)
    return o
