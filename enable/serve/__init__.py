"""Kernels of the library under ATen: which serve a call, how they are launched, registered and exported."""
