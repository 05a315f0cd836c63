# op: aten::abs
# name: abs_waits_for_its_lanes
# technique: lanes exchange elements through memory of their own and wait at a barrier in between


@triton.jit
def kernel(x_ptr, scratch_ptr, o_ptr, n, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    i = first + tl.arange(0, BLOCK)
    tl.store(scratch_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    tl.debug_barrier()
    j = first + BLOCK - 1 - tl.arange(0, BLOCK)
    tl.store(o_ptr + j, tl.abs(tl.load(scratch_ptr + j, mask=j < n)), mask=j < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 1024),)](x, torch.empty_like(x), o, x.numel(), BLOCK=1024)
    return o
