# op: tanh
# name: tanh_handle_surgery
# family: E
# tries: writes the interpreter's NumPy array behind a tl value with Python's maths
# should be caught by: lint (.handle); compile gate
# outcome: CHEAT|COMPILE_ERROR
# layer: lint, compile


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    for k in range(BLOCK):
        x.handle.data[k] = math.tanh(x.handle.data[k])
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 32),)](x, o, o.numel(), BLOCK=32)
    return o
