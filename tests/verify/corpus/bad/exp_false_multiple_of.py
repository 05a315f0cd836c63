# op: aten::exp
# name: exp_false_multiple_of
# family: U
# tries: tl.multiple_of and tl.max_contiguous of offsets of any stride: a GPU loads 16 bytes at once
# should be caught by: hints compared with the values
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.max_contiguous(tl.multiple_of(i * stride, BLOCK), BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + at, mask=i < n)), mask=i < n)


def wrapper(self):
    o = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n = o.numel()
    if n == 0:
        return o
    if self.dim() == 1:
        kernel[(triton.cdiv(n, 128),)](self, o, n, self.stride(0), BLOCK=128)
    else:
        kernel[(triton.cdiv(n, 128),)](self.contiguous(), o, n, 1, BLOCK=128)
    return o
