"""aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) ->
    Tensor

`offs` holds the end of each group and has to ascend. Groups split the rows if only self is 2-D, the columns
if only mat2 is 2-D, and the inner dimension if both are. Elements outside all groups are not written, as in
ATen. If both are 2-D with different inner sizes, the excess in the longer one belongs to no group.
"""

import torch
from blocks.group_products import launch_groups
from blocks.matmul import launch_matmul, matmul_tile

OVERLOADS = ("aten::_grouped_mm",)
DTYPES = ("bfloat16", "float16", "float32")

ROW_BYTES = 16  # rows begin at multiples of it, as ATen requires


def expect_matrix(x):
    """Raise RuntimeError, as ATen does, unless rows or columns start at multiples of 16 bytes."""
    rows, columns = x.stride()[-2:]
    if rows == 1 and columns >= max(1, x.shape[-2]):
        step = columns
    elif columns == 1 and rows >= max(1, x.shape[-1]):
        step = rows
    else:
        raise RuntimeError(f"a matrix needs one stride 1, got {x.stride()}")
    if step * x.element_size() % ROW_BYTES:
        raise RuntimeError(f"rows {step} elements apart are not aligned to {ROW_BYTES} bytes")


def expect_operands(a, b, offs):
    """Raise RuntimeError in the same cases as ATen."""
    fits = a.dim() == b.dim() == 2 or a.shape[-1] == b.shape[-2]
    if a.dim() not in (2, 3) or b.dim() not in (2, 3) or a.dtype != b.dtype or not fits:
        raise RuntimeError(f"cannot multiply {a.dtype} {tuple(a.shape)} by {b.dtype} {tuple(b.shape)}")
    expect_matrix(a)
    expect_matrix(b)
    if (offs is None) != (a.dim() == b.dim() == 3) or (offs is None and a.shape[0] != b.shape[0]):
        raise RuntimeError(f"groups {tuple(a.shape)} and {tuple(b.shape)} do not fit, with offsets: {offs is not None}")
    if offs is not None and (offs.dim() != 1 or offs.dtype != torch.int32):
        raise RuntimeError(f"offsets must be an int32 vector, got {offs.dtype} {tuple(offs.shape)}")
    for x in (a, b):
        if a.dim() != b.dim() and x.dim() == 3 and x.shape[0] != offs.shape[0]:
            raise RuntimeError(f"{offs.shape[0]} offsets do not fit {x.shape[0]} matrices")


def wrapper(self, mat2, offs=None, bias=None, out_dtype=None):
    if self.dtype not in (torch.bfloat16, torch.float16, torch.float32) or out_dtype not in (None, self.dtype):
        raise RuntimeError(f"_grouped_mm does not support {self.dtype} with out_dtype {out_dtype}")
    if bias is not None:
        raise RuntimeError("_grouped_mm does not support a bias")
    expect_operands(self, mat2, offs)
    shape = [offs.shape[0]] if self.dim() == mat2.dim() == 2 else [self.shape[0]] if offs is None else []
    out = torch.empty((*shape, self.shape[-2], mat2.shape[-1]), dtype=self.dtype, device=self.device)
    half = self.dtype != torch.float32
    if not out.numel():
        return out
    if offs is None:
        (B, M, K), N = self.shape, mat2.shape[2]
        tile = matmul_tile(B, M, N, K, half, (128, 128) if half else (64, 64))
        launch_matmul(self, mat2, None, out, (0, 1), tile)
    elif not offs.shape[0]:
        return out
    elif self.dim() == 3:
        launch_groups(mat2.transpose(0, 1), self.transpose(1, 2), out.transpose(0, 1), offs, half)
    elif mat2.dim() == 3:
        launch_groups(self, mat2, out, offs, half)
    else:
        K = min(self.shape[1], mat2.shape[0])
        launch_groups(self.narrow(1, 0, K), mat2.narrow(0, 0, K), out, offs, half)
    return out
