"""aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor

Forward transform of real numbers. If onesided, the result only holds the non-negative frequencies (the first
half and the middle) along the last dimension in `dim`; the others are their conjugates.
"""

from blocks.fourier import empty_transform, transform, transformed_dims

OVERLOADS = ("aten::_fft_r2c",)
DTYPES = ("float32", "float64")


def wrapper(self, dim, normalization, onesided):
    dims = transformed_dims(self, dim)
    sizes = list(self.shape)
    if onesided:
        sizes[dims[-1]] = sizes[dims[-1]] // 2 + 1
    out = empty_transform(self, sizes, dims, self.dtype.to_complex(), True)
    transform(self, out, dims, [self.shape[d] for d in dims], True, normalization, reads="real")
    return out
