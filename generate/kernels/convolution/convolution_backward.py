"""aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride,
    SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3]
    output_mask) -> (Tensor, Tensor, Tensor)

The input gradient is the transposed convolution of grad_output with the weight, or the plain convolution if
the forward pass was transposed. The weight gradient is a matrix product over positions. The bias gradient is
a sum.
"""

from blocks.convolution import convolution_result, convolve, convolved_size
from blocks.reduction import reduce
from blocks.weight_gradients import weight_gradient
from blocks.windows import for_axes

OVERLOADS = ("aten::convolution_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    axes = max(input.dim() - 2, 1)
    stride, padding, dilation, extra = [for_axes(v, axes) for v in (stride, padding, dilation, output_padding)]
    size = convolved_size(input, weight, stride, padding, dilation, transposed, extra, groups)
    if tuple(grad_output.shape) != size or grad_output.dtype != input.dtype:
        raise RuntimeError(
            f"expected a gradient {input.dtype} {size}, got {grad_output.dtype} {tuple(grad_output.shape)}"
        )
    geometry = stride, padding, dilation
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = convolution_result(input, weight, input.shape)
        convolve(grad_output, weight, None, grad_input, *geometry, not transposed, groups)
    if output_mask[1]:
        grad_weight = convolution_result(weight, input, weight.shape)
        pair = (input, grad_output) if transposed else (grad_output, input)
        weight_gradient(*pair, weight, *geometry, groups, grad_weight)
    if output_mask[2]:
        dims = [d for d in range(grad_output.dim()) if d != 1]
        grad_bias = reduce("sum", [grad_output], dims, dtype=grad_output.dtype)
    return grad_input, grad_weight, grad_bias
