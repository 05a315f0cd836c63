"""Serve ATen calls with kernels from the library: choose, launch, register and export them."""
