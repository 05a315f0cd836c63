"""Level 1: a reduction."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(5, 7, 9)]


def get_init_inputs():
    return []
