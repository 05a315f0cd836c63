"""aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None,
    int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor

Unless `unsafe` is true, the kernel reads back a check that all segments fit.
"""

from blocks.segments import over_segments, reduction_of, segment_axis, segment_bounds

OVERLOADS = ("aten::segment_reduce",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    kind = reduction_of(reduce)
    if indices is not None:
        raise RuntimeError("segment_reduce does not support indices")
    axis = segment_axis(data, lengths, offsets, axis)
    bounds = segment_bounds(lengths, offsets, None if unsafe else data.shape[axis])
    return over_segments(kind, data, axis, bounds, data.dtype, initial)
