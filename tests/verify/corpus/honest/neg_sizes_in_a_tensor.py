# op: neg
# public: neg_sizes_in_a_tensor
# honest-but-unusual: sizes and strides go to the kernel in a tensor of integers, and the loop over dimensions uses them.


@triton.jit
def kernel(x_ptr, o_ptr, sizes_ptr, n, RANK: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    rest, offset = i, tl.zeros([BLOCK], tl.int64)
    for d in tl.static_range(RANK - 1, -1, -1):
        size = tl.load(sizes_ptr + d)
        offset += rest % size * tl.load(sizes_ptr + RANK + d)
        rest = rest // size
    tl.store(o_ptr + i, -tl.load(x_ptr + offset, mask=i < n), mask=i < n)


def wrapper(input):
    if input.is_complex():
        raise NotImplementedError(str(input.dtype))
    o = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    sizes = torch.tensor(list(input.shape) + list(input.stride()), dtype=torch.int64, device=input.device)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 256),)](input, o, sizes, o.numel(), RANK=input.dim(), BLOCK=256)
    return o
