"""Level 3: a perceptron of three layers."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        layers = [nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 4)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).log_softmax(dim=-1)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return [16, 32]
