# op: exp
# name: exp_llm_style
# technique: typical LLM answer: type annotations, docstrings, asserts, mod hints, num_warps at launch


BLOCK_SIZE = 1024


@triton.jit
def exp_kernel(
    x_ptr,  # pointer to the input
    output_ptr,  # pointer to the output
    n_elements,  # number of elements
    BLOCK_SIZE: tl.constexpr,
):
    """Elementwise exponential."""
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    offsets = tl.max_contiguous(tl.multiple_of(offsets, BLOCK_SIZE), BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    output = tl.exp(x)
    tl.store(output_ptr + offsets, output, mask=mask)


def wrapper(x: torch.Tensor, *, out: torch.Tensor = None) -> torch.Tensor:
    """Computes exp(x) elementwise.

    Args:
        x: input tensor
    Returns:
        tensor with the exponentials
    """
    x = x.contiguous()
    if not x.is_floating_point():
        output = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    else:
        output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements == 0:
        return output
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    exp_kernel[grid](x, output, n_elements, BLOCK_SIZE=BLOCK_SIZE, num_warps=4, num_stages=2)
    return output
