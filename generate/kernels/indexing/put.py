"""aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor

The tensor is indexed as if it were flat. Accumulation uses atomics.
"""

import torch
from blocks.copies import copied
from blocks.creation import fill
from blocks.indexing import put, put_last

OVERLOADS = ("aten::put",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, index, source, accumulate=False):
    if index.dtype != torch.int64:
        raise RuntimeError(f"index must be int64, got {index.dtype}")
    if index.numel() != source.numel() or self.dtype != source.dtype:
        raise RuntimeError(
            f"expected a {self.dtype} source with {index.numel()} elements, got {source.dtype} with {source.numel()}"
        )
    if index.shape != source.shape:
        index, source = [(t if t.is_contiguous() else copied(t)).view(-1) for t in (index, source)]
    out = torch.empty_like(self)
    x = self if self.is_contiguous() else copied(self)
    new = torch.empty(x.numel(), dtype=x.dtype, device=x.device)
    new = out.view(-1) if out.is_contiguous() else new
    if accumulate:
        put(x.view(-1), [index], source, True, out=new)
    else:
        put_last(x.view(-1), [index], source, new)
    return out if out.is_contiguous() else fill(out, new.view(out.shape))
