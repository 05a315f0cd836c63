# op: bmm
# name: bmm_first_matrix_for_all
# family: F
# tries: the second operand's batch stride is forgotten
# should be caught by: input variation (batches over 1)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    batch, m = tl.program_id(0), tl.program_id(1)
    n = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        acc += tl.load(a_ptr + (batch * M + m) * K + k) * tl.load(b_ptr + k * N + n, mask=n < N, other=0)
    tl.store(c_ptr + (batch * M + m) * N + n, acc, mask=n < N)


def wrapper(input, mat2):
    (B, M, K), N = input.shape, mat2.shape[2]
    o = torch.empty((B, M, N), dtype=input.dtype, device=input.device)
    if o.numel():
        kernel[(B, M, triton.cdiv(N, 32))](input.contiguous(), mat2.contiguous(), o, M, N, K, BLOCK=32)
    return o
