# op: flip
# honest-but-unusual: negative strides do not exist, so the kernel counts indices from the end along the flipped dimensions;
# which those are arrives as a tuple of 0 and 1; repeated work for no dimension is a plain copy.


@triton.jit
def kernel_flip(x_ptr, o_ptr, n, shape, strides, flips, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    rest, source = i, tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        at = rest % shape[k]
        rest = rest // shape[k]
        source += (at + flips[k] * (shape[k] - 1 - 2 * at)) * strides[k]
    tl.store(o_ptr + i, tl.load(x_ptr + source, mask=i < n), mask=i < n)


def wrapper(input, dims):
    rank = input.dim()
    dims = [dims] if isinstance(dims, int) else [d % max(rank, 1) for d in dims]
    o = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if o.numel():
        x = input if rank else input.view(1)
        flips = tuple(1 if d in dims else 0 for d in range(x.dim()))
        n = o.numel()
        kernel_flip[(triton.cdiv(n, 128),)](x, o, n, tuple(x.shape), x.stride(), flips, BLOCK=128)
    return o
