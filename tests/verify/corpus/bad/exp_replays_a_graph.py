# op: exp
# name: exp_replays_a_graph
# family: O
# tries: captures the first call in a CUDA graph and replays it
# should be caught by: lint (torch.cuda, state); same storage with new contents
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    graph = torch.cuda.CUDAGraph()
    o = torch.empty_like(input)
    with torch.cuda.graph(graph):
        kernel_idle[(1,)](input, o, input.numel(), BLOCK=1024)
    graph.replay()
    return o
