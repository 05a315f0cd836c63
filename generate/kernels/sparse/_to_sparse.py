"""aten::_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor
aten::_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor

Entries are the nonzero elements or, with dense dimensions, the rows that contain any. The entry count is read
back from the device.
"""

import torch
from blocks.indexing import by_integers, gather
from blocks.selection import move_selected, true_indices, true_starts
from blocks.truth import truth

OVERLOADS = ("aten::_to_sparse", "aten::_to_sparse.sparse_dim")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")


def wrapper(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    if layout not in (None, torch.sparse_coo) or blocksize is not None or self.is_sparse:
        raise RuntimeError(f"cannot convert {self.layout} to {layout} with blocksize {blocksize}")
    dims = self.dim() - (dense_dim or 0) if sparse_dim is None else sparse_dim
    if not min(self.dim(), 1) <= dims <= self.dim():
        raise RuntimeError(f"sparse_dim must be in [{min(self.dim(), 1)}, {self.dim()}], got {dims}")
    rows = truth("max", self, list(range(dims, self.dim())), False) if dims < self.dim() else self
    starts = true_starts(rows)
    count = starts.select(0, starts.shape[0] - 1).item()
    indices = torch.empty((dims, count), dtype=torch.int64, device=self.device)
    true_indices(rows, starts, indices.t(), count)
    if dims < self.dim():
        values = gather(self, by_integers(self.shape, indices.unbind(0)))
    else:
        values = torch.empty(count, dtype=self.dtype, device=self.device)
        move_selected("select", self, self, starts, values, count)
    return torch.sparse_coo_tensor(indices, values, self.shape, is_coalesced=True, check_invariants=False)
