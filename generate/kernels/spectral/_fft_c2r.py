"""aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor

Backward transform to last_dim_size real numbers along the last dimension in `dim`. The input holds the
non-negative frequencies there: the first half and the middle.
"""

from blocks.fourier import empty_transform, transform, transformed_dims

OVERLOADS = ("aten::_fft_c2r",)
DTYPES = ("complex128", "complex64")


def wrapper(self, dim, normalization, last_dim_size):
    dims = transformed_dims(self, dim)
    sizes = list(self.shape)
    sizes[dims[-1]] = last_dim_size
    if last_dim_size < 1 or self.shape[dims[-1]] != last_dim_size // 2 + 1:
        raise RuntimeError(f"cannot transform {list(self.shape)} along {dims} to last_dim_size {last_dim_size}")
    out = empty_transform(self, sizes, dims, self.dtype.to_real(), True)
    transform(self, out, dims, [sizes[d] for d in dims], False, normalization, reads="hermitian", writes="real")
    return out
