"""How to step from row to row, each of which is walked along by itself."""

from blocks.offsets import integers, walk

__all__ = ["walk_rows"]


def walk_rows(tensors, dims, PLAIN):
    """`walk` over rows. For all that Triton knows the number of a single one may be odd, and what it begins with lie
    anywhere: it takes no steps."""
    shape, strides = walk(tensors, dims, PLAIN)
    if all([tensors[0].shape[d] == 1 for d in dims]):
        strides = tuple([integers((0,), PLAIN) for _ in strides])
    return shape, strides
