"""Weight normalization: v * g / |v|, with the norm over all dimensions but the first or the last."""

import torch
from blocks.reduction import reduce


def expect_weight_norm(v, g, dim):
    """Return the dtype for norms; raise RuntimeError in the same cases as ATen."""
    if dim not in (0, v.dim() - 1) or v.dim() == 0:
        raise RuntimeError(f"weight norm keeps the first or the last dimension, got {dim} for {tuple(v.shape)}")
    if v.dtype != g.dtype or g.numel() != v.shape[dim]:
        raise RuntimeError(f"norms {g.dtype} {tuple(g.shape)} do not fit weight {v.dtype} {tuple(v.shape)}")
    return torch.float64 if v.dtype == torch.float64 else torch.float32


def norms_view(dim, v, x):
    """Return a view of x that broadcasts to v, with one number per index along dim."""
    return x.view([v.shape[dim] if d == dim else 1 for d in range(v.dim())])


def over_others(kind, inputs, dim, **how):
    """Reduce over all dimensions but dim and return [v.shape[dim]]."""
    inputs = [x.unsqueeze(-1) for x in inputs]  # so that at least one other dimension exists
    return reduce(kind, inputs, [d for d in range(inputs[0].dim()) if d != dim], **how)
