# op: index_add
# name: index_add_of_a_copy
# technique: clone the argument as a whole, then atomics from every index; where there is none, or the source is zero, the
# copy is the answer.


@triton.jit
def kernel_add(o_ptr, i_ptr, s_ptr, rows, inner, size, alpha, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = k < rows * inner
    row = k // inner
    to = tl.load(i_ptr + row % size, mask=inside, other=0)
    value = tl.load(s_ptr + k, mask=inside, other=0) * alpha
    tl.atomic_add(o_ptr + to * inner + k % inner, value, mask=inside)


def wrapper(self, dim, index, source, *, alpha=1):
    o = self.clone(memory_format=torch.contiguous_format)
    if self.dim() == 0:
        flat, given = o.view(1, 1), source.contiguous().view(-1, 1)
    else:
        flat, given = o.transpose(0, dim).contiguous(), source.transpose(0, dim).contiguous()
    rows = given.shape[0]
    inner = given.numel() // rows if rows else 0
    if inner:
        kernel_add[(triton.cdiv(rows * inner, 64),)](
            flat, index.contiguous(), given, rows, inner, max(index.numel(), 1), alpha, BLOCK=64
        )
    return o if self.dim() == 0 else flat.transpose(0, dim).contiguous()
