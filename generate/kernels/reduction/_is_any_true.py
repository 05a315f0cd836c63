"""aten::_is_any_true(Tensor self) -> Tensor"""

from blocks.truth import truth

OVERLOADS = ("aten::_is_any_true",)
DTYPES = ("bool",)


def wrapper(self):
    return truth("max", self, None, False)
