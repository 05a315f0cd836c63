"""aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) ->
    Tensor

Singular values (with hermitian, magnitudes of eigenvalues) count if they exceed both atol and rtol times the
largest one. The default for rtol is max(rows, columns) times the dtype's epsilon, or 0 if a positive atol is
given.
"""

import torch
from blocks.elementwise import elementwise
from blocks.pseudoinverse import inverse_above, inverse_above_either, weighted_product
from blocks.singular import eigen, singular

OVERLOADS = ("aten::linalg_pinv.atol_rtol_tensor",)
DTYPES = ("float32", "float64")


def wrapper(self, *, atol=None, rtol=None, hermitian=False):
    if hermitian:
        values, vectors = eigen(self, False, True, "linalg.pinv")
        left, right = vectors, vectors.mT
    else:
        u, values, vh = singular(self, False, True, "linalg.pinv")
        left, right = vh.mT, u.mT
    m, n = self.shape[-2:]
    if not self.numel():
        return torch.empty((*self.shape[:-2], n, m), dtype=self.dtype, device=self.device)
    function = inverse_above if atol is None or rtol is not None else inverse_above_either
    least = 0.0 if atol is None else atol.unsqueeze(-1)
    share = torch.finfo(self.dtype).eps * max(m, n) if rtol is None else rtol.unsqueeze(-1)
    ends = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
    shapes = [x.shape for x in (least, share) if isinstance(x, torch.Tensor)]
    weights = torch.empty(torch.broadcast_shapes(values.shape, *shapes), dtype=self.dtype, device=self.device)
    elementwise(function, values, *ends, least, share, out=weights)
    batch = weights.shape[:-1]
    out = torch.empty((*batch, n, m), dtype=self.dtype, device=self.device)
    left, right = left.expand((*batch, *left.shape[-2:])), right.expand((*batch, *right.shape[-2:]))
    return weighted_product(left, weights, right, out)
