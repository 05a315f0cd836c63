"""aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()

PyTorch's own function composes the error message.
"""

from blocks.factorization import check_info

OVERLOADS = ("aten::_linalg_check_errors",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(info, api_name, *, is_matrix):
    check_info(info, api_name)
