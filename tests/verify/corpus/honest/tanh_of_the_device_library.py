# op: tanh
# name: tanh_of_the_device_library
# technique: CUDA's device library by its ordinary import.

from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    y = tl.where(libdevice.isnan(x), x, libdevice.tanh(x))
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 256),)](x, o, n, BLOCK=256)
    return o
