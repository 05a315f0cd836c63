# op: cummax
# name: cummax_loses_nan
# family: F
# tries: running maximum skips NaN; index of the first
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def kernel(x_ptr, v_ptr, k_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    m = x
    v_v = tl.associative_scan(x, 0, larger)
    e = tl.where(x >= v_v, i, 0)
    v_k = tl.associative_scan(e, 0, larger)
    tl.store(v_ptr + row * n + i, v_v.to(v_ptr.dtype.element_ty), mask=i < n)
    tl.store(k_ptr + row * n + i, v_k.to(k_ptr.dtype.element_ty), mask=i < n)


def lines_of(input, dim):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    return x.contiguous()


def back(o, input, dim):
    return (o.movedim(-1, dim) if input.dim() else o.reshape(())).contiguous()


def wrapper(input, dim):
    x = lines_of(input, dim)
    v = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    k = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    n = x.shape[-1]
    if x.numel():
        kernel[(x.numel() // n,)](x, v, k, n, BLOCK=triton.next_power_of_2(n))
    return back(v, input, dim), back(k, input, dim)
