"""What the ending of a product of matrices is given."""


def ending_operand(t, shape):
    """t, broadcast to this shape of a matrix, if its elements lie there one after the other: so an ending reads them.
    Raises NotImplementedError where they do not."""
    matrix = t.view(shape) if t.numel() == shape[0] * shape[1] else t.expand(shape)
    if not matrix.is_contiguous():
        raise NotImplementedError(f"an operand of strides {tuple(t.stride())} after a product")
    return matrix
