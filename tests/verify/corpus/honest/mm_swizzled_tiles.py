# op: mm
# honest-but-unusual: programs are renumbered with tl.swizzle2d so that neighbours share operand tiles; tl.dot in IEEE fp32;
# the grid is a nested function, not a lambda; K = 0 gives zeros.


@triton.jit
def kernel_mm(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid_m, pid_n = tl.swizzle2d(tl.program_id(0) // cols, tl.program_id(0) % cols, rows, cols, 3)
    m = pid_m.to(tl.int64) * BM + tl.arange(0, BM)
    n = pid_n.to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sa[0] + k[None, :] * sa[1], mask=(m < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(b_ptr + k[:, None] * sb[0] + n[None, :] * sb[1], mask=(k < K)[:, None] & (n < N)[None, :], other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def wrapper(input, mat2):
    (M, K), N = input.shape, mat2.shape[1]
    o = torch.empty((M, N), dtype=input.dtype, device=input.device)

    def grid(meta):
        return (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)

    if M and N:
        kernel_mm[grid](input, mat2, o, M, N, K, input.stride(), mat2.stride(), BM=16, BN=16, BK=16)
    return o
