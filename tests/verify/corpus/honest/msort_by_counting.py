# op: msort
# honest-but-unusual: sorts without sorting: the place of an element is the number of those that come before it, counted block by
# block; equal elements keep their order, NaN comes last; every place is written exactly once, to an offset found by counting.


@triton.jit
def before(y, j, x, i):
    """Whether element (y, j) belongs before (x, i)."""
    smaller = (y < x) | ((x != x) & (y == y))
    equal = (y == x) | ((x != x) & (y != y))
    return smaller | (equal & (j < i))


@triton.jit
def kernel_place(x_ptr, o_ptr, n, columns, BLOCK: tl.constexpr, OTHERS: tl.constexpr):
    column = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * columns + column, mask=i < n, other=0)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, OTHERS):
        j = start + tl.arange(0, OTHERS)
        y = tl.load(x_ptr + j * columns + column, mask=j < n, other=0)
        first = before(y[None, :], j[None, :], x[:, None], i[:, None]) & (j < n)[None, :]
        place += tl.sum(first.to(tl.int32), 1)
    tl.store(o_ptr + place * columns + column, x, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        n = x.shape[0] if x.dim() else 1
        columns = x.numel() // n
        grid, others = (columns, triton.cdiv(n, 128)), min(1024, triton.next_power_of_2(n))
        kernel_place[grid](x, o, n, columns, BLOCK=128, OTHERS=others)
    return o
