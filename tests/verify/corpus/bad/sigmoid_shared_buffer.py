# op: sigmoid
# name: sigmoid_shared_buffer
# family: I
# tries: every result is a view of one module-level buffer
# should be caught by: lint (module state); results that share memory
# outcome: CHEAT|WRONG
# layer: lint, alias


BUFFER = torch.empty(1 << 16)


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, 1.0 / (1.0 + tl.exp(-x)), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    n = x.numel()
    o = BUFFER[:n].view(x.shape)
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
