"""Steps from row to row, for kernels that walk along each row separately."""

from blocks.offsets import integers, walk

__all__ = ["walk_rows"]


def walk_rows(tensors, dims, PLAIN):
    """Return `walk` over rows, with stride 0 if there is only one row.

    Triton does not know that a single row's number is 0. A stride that 16 does not divide would hide that
    loads are aligned.
    """
    shape, strides = walk(tensors, dims, PLAIN)
    if all([tensors[0].shape[d] == 1 for d in dims]):
        strides = tuple([integers((0,), PLAIN) for _ in strides])
    return shape, strides
