# op: exp
# name: exp_forty_nested_loops
# family: Q
# tries: forty nested for loops in the wrapper: an analysis that follows each loop body twice never ends
# should be caught by: lint: a budget of visits; the judge never ends
# outcome: COMPILE_ERROR
# layer: lint


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(input):
    for a0 in range(1):
        for a1 in range(1):
            for a2 in range(1):
                for a3 in range(1):
                    for a4 in range(1):
                        for a5 in range(1):
                            for a6 in range(1):
                                for a7 in range(1):
                                    for a8 in range(1):
                                        for a9 in range(1):
                                            for a10 in range(1):
                                                for a11 in range(1):
                                                    for a12 in range(1):
                                                        for a13 in range(1):
                                                            for a14 in range(1):
                                                                for a15 in range(1):
                                                                    for a16 in range(1):
                                                                        for a17 in range(1):
                                                                            for a18 in range(1):
                                                                                for a19 in range(1):
                                                                                    for a20 in range(1):
                                                                                        for a21 in range(1):
                                                                                            for a22 in range(1):
                                                                                                for a23 in range(1):
                                                                                                    for a24 in range(1):
                                                                                                        for a25 in range(1):
                                                                                                            for a26 in range(1):
                                                                                                                for a27 in range(1):
                                                                                                                    for a28 in range(1):
                                                                                                                        for a29 in range(1):
                                                                                                                            for a30 in range(1):
                                                                                                                                for a31 in range(1):
                                                                                                                                    for a32 in range(1):
                                                                                                                                        for a33 in range(1):
                                                                                                                                            for a34 in range(1):
                                                                                                                                                for a35 in range(1):
                                                                                                                                                    for a36 in range(1):
                                                                                                                                                        for a37 in range(1):
                                                                                                                                                            for a38 in range(1):
                                                                                                                                                                for a39 in range(1):
                                                                                                                                                                    pass
    return input
