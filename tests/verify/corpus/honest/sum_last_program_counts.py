# op: aten::sum
# name: sum_last_program_counts
# technique: partial sums are stored, counted by an atomic, and added up by the program that comes last


@triton.jit
def kernel(x_ptr, part_ptr, o_ptr, c_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(part_ptr.dtype.element_ty)
    tl.store(part_ptr + pid, tl.sum(x, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(c_ptr, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        p = tl.arange(0, PARTS)
        parts = tl.load(part_ptr + p, mask=p < tl.num_programs(0), other=0)
        tl.store(o_ptr, tl.sum(parts, axis=0).to(o_ptr.dtype.element_ty))


def wrapper(self, *, dtype=None):
    x = self.contiguous()
    n = x.numel()
    dtype = dtype or (self.dtype if self.dtype.is_floating_point else torch.int64)
    o = torch.zeros((), dtype=dtype, device=x.device)
    if n:
        programs = triton.cdiv(n, 256)
        wide = torch.float64 if dtype == torch.float64 else torch.float32 if dtype.is_floating_point else torch.int64
        parts = torch.empty((programs,), dtype=wide, device=x.device)
        count = torch.zeros((1,), dtype=torch.int32, device=x.device)
        kernel[(programs,)](
            x.view(torch.uint8) if x.dtype == torch.bool else x, parts, o, count, n,
            PARTS=triton.next_power_of_2(programs), BLOCK=256,
        )
    return o
