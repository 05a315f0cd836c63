"""The model of the picture in README.md: one as a user may have it."""

import torch


def make(width=64):
    """An image classifier with a convolution, a normalization and attention."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, width, 4, stride=4),
        torch.nn.GroupNorm(8, width),
        torch.nn.GELU(),
        torch.nn.Flatten(2),
        torch.nn.Linear(64, 32),
        torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True),
        torch.nn.Flatten(),
        torch.nn.Linear(width * 32, 10),
    )
    batch = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

    return model, batch, loss, torch.optim.AdamW(model.parameters())
