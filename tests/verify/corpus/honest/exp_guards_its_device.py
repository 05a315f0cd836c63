# op: exp
# name: exp_guards_its_device
# technique: says in an error where its arguments have to lie, and allocates with the device of its argument; nothing else
# depends on it.


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self, *, out=None):
    if self.device.type == "meta":
        raise ValueError("no kernel for {} on {}".format(self.dtype, self.device))
    assert out is None or out.device == self.device, f"out lies on {out.device}, and self on {self.device}"
    options = {"dtype": self.dtype, "device": self.device}
    x = self.contiguous()
    o = torch.empty(x.shape, **options)
    n = x.numel()
    if n:
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, o, n, BLOCK=512)
    return o
