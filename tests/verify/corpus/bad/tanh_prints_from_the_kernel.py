# op: tanh
# name: tanh_prints_from_the_kernel
# family: N
# tries: tl.device_print in a loop of every lane
# should be caught by: output capped and drained; lint (tl.device_print); wall-clock limit
# outcome: CHEAT|TIMEOUT|WRONG|COMPILE_ERROR
# layer: lint, time, compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    for k in range(2000):
        tl.device_print("PASS PASS PASS PASS PASS PASS", x)
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 64),)](x, o, o.numel(), BLOCK=64)
    return o
