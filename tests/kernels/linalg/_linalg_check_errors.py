"""No errors, in one number, in several, in none."""

CASES = {
    "aten::_linalg_check_errors": [
        ("i32[]=0", "linalg.inv", {"is_matrix": True}),
        ("i32[2,3]=0", "linalg.inv", {"is_matrix": False}),
        ("i32[0]", "linalg.inv", {"is_matrix": False}),
    ],
}
REFUSED = {
    "aten::_linalg_check_errors": [
        ("i32(0, 2)", "linalg.inv", {"is_matrix": False}),
    ],
}
