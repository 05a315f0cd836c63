"""Train on a device with the library's kernels, and compare with PyTorch's own kernels."""
