"""aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor
aten::randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, Device?
    device=None, bool? pin_memory=None) -> Tensor

The permutation is the sort order of n random 64-bit integers.
"""

import torch
from blocks.arithmetic import identity
from blocks.creation import fill
from blocks.drawn_integers import last_integer, random_int64
from blocks.elementwise import elementwise
from blocks.sorting import sort_into

OVERLOADS = ("aten::randperm", "aten::randperm.generator")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(n, *, generator=None, dtype=torch.int64, layout=None, device=None, pin_memory=None, philox):
    dtype = torch.int64 if dtype is None else dtype
    if not 0 <= n <= last_integer(dtype) + 1:
        raise RuntimeError(f"n must be in [0, the largest {dtype} + 1], got {n}")
    keys, ordered, order = [torch.empty(n, dtype=torch.int64, device=device) for _ in range(3)]
    elementwise(identity, source=(random_int64, *philox), common=torch.int64, out=keys)
    sort_into(keys, 0, [ordered, order])
    return order if dtype == torch.int64 else fill(torch.empty(n, dtype=dtype, device=device), order)
