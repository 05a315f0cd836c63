# op: softmax
# name: softmax_whole_row_in_a_block
# family: F
# tries: rows longer than one block of 1024 are cut off
# should be caught by: input variation (sizes beyond each literal)
# outcome: WRONG
# layer: compare, access


@triton.jit
def kernel_row(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, (e / tl.sum(e, 0)).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, dim, dtype=None):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.zeros(x.shape, dtype=dtype or input.dtype, device=input.device)
    if o.numel():
        kernel_row[(o.numel() // x.shape[-1],)](x, o, x.shape[-1], BLOCK=1024)
    return (o.movedim(-1, dim) if input.dim() else o).contiguous().reshape(input.shape)
