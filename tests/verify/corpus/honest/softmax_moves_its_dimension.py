# op: softmax
# name: softmax_moves_its_dimension
# technique: the dimension is moved to the end and back, so that results are dense in another order than ATen gives; converts
# what it is given to the dtype that it is asked for.


@triton.jit
def kernel(x_ptr, o_ptr, m, n, inner, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * n + c, mask=c < n, other=float("-inf"))
    x = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + r * n + c, x / tl.sum(x, 0), mask=c < n)


def wrapper(input, dim, dtype=None):
    if input.dim() == 0:
        return wrapper_rows(input.view(1), dtype).view(())
    x = input.movedim(dim, -1).contiguous()
    return wrapper_rows(x, dtype).movedim(-1, dim)


def wrapper_rows(x, dtype):
    x = x.to(dtype or x.dtype)
    o = torch.empty_like(x)
    n = x.shape[-1]
    m = x.numel() // n if n else 0
    if m:
        kernel[(m,)](x, o, m, n, 1, BLOCK=triton.next_power_of_2(n))
    return o.contiguous()
