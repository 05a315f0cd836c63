# op: msort
# honest-but-unusual: a column is sorted in one block by tl.sort, padded with NaN or the largest integer, which end up behind
# all else; the block is the next power of two of the column's length.


@triton.jit
def kernel_sort(x_ptr, o_ptr, n, columns, pad, FLOATING: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    i = tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(x_ptr + i * columns + column, mask=i < n, other=pad)
    if FLOATING:
        nans = tl.sum((x != x).to(tl.int32), 0)
        x = tl.sort(tl.where(x != x, float("inf"), x))
        nan = (i >= n - nans) & (i < n)
        x = tl.where(nan, float("nan"), x)
    else:
        x = tl.sort(x)
    tl.store(o_ptr + i * columns + column, x, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        n = x.shape[0] if x.dim() else 1
        floating = x.dtype.is_floating_point
        pad = math.inf if floating else torch.iinfo(x.dtype).max if x.dtype != torch.bool else 1
        block = triton.next_power_of_2(n)
        kernel_sort[(x.numel() // n,)](x, o, n, x.numel() // n, pad, FLOATING=floating, BLOCK=block)
    return o
