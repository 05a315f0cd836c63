"""aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
    bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor

Computed as an implicit matrix product, [positions, channels x taps] @ [channels x taps, channels]. Neither
operand is materialized; at most, a tensor is copied so that its channels are innermost. Sums are in fp32, or
in fp64 for fp64 tensors.
"""

from blocks.convolution import convolution_result, convolve, convolved_size
from blocks.copies import copied
from blocks.windows import for_axes

OVERLOADS = ("aten::convolution",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    axes = max(input.dim() - 2, 1)
    stride, padding, dilation, extra = [for_axes(v, axes) for v in (stride, padding, dilation, output_padding)]
    size = convolved_size(input, weight, stride, padding, dilation, transposed, extra, groups)
    if bias is not None and (tuple(bias.shape) != (size[1],) or bias.dtype != input.dtype):
        raise RuntimeError(
            f"expected a bias {input.dtype} with {size[1]} elements, got {bias.dtype} {tuple(bias.shape)}"
        )
    if bias is not None and not bias.is_contiguous():
        bias = copied(bias)  # the kernels assume stride 1
    out = convolution_result(input, weight, size)
    convolve(input, weight, bias, out, stride, padding, dilation, transposed, groups)
    return out
