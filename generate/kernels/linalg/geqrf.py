"""aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)"""

from blocks.householder import reflectors

OVERLOADS = ("aten::geqrf",)
DTYPES = ("float32", "float64")


def wrapper(self):
    return reflectors(self, "geqrf")
