"""aten::_is_all_true(Tensor self) -> Tensor"""

from blocks.truth import truth

OVERLOADS = ("aten::_is_all_true",)
DTYPES = ("bool",)


def wrapper(self):
    return truth("min", self, None, False)
