"""Make the cases that kernels are judged on, and compute ATen's answers to them."""

import warnings

import torch

with warnings.catch_warnings():  # PyTorch warns once in a process about complex32, which cases have on purpose
    warnings.filterwarnings("ignore", "ComplexHalf", UserWarning)
    torch.empty(0, dtype=torch.complex32)
