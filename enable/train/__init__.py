"""Training on a device that has the library's kernels, beside PyTorch's own."""
