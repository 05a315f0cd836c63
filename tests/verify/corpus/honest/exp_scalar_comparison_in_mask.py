# op: aten::exp
# name: exp_scalar_comparison_in_mask
# technique: a mask of a block's comparison and a scalar's


@triton.jit
def kernel(x_ptr, o_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (col < cols) & (row < rows)
    at = row.to(tl.int64) * cols + col
    tl.store(o_ptr + at, tl.exp(tl.load(x_ptr + at, mask=mask)), mask=mask)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        cols = x.shape[-1] if x.dim() else 1
        rows = x.numel() // cols
        kernel[(triton.cdiv(cols, 64), rows)](x, o, rows, cols, BLOCK=64)
    return o
