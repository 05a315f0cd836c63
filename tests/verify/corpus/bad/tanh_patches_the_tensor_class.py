# op: tanh
# name: tanh_patches_the_tensor_class
# family: K
# tries: makes the reference wrong in its own way: torch.tanh becomes the identity
# should be caught by: the reference is in another process; lint (assignment to torch)
# outcome: CHEAT|WRONG
# layer: lint, compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(input):
    torch.tanh = torch.Tensor.tanh = torch.ops.aten.tanh = lambda x: x
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
