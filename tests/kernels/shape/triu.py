"""Diagonals."""

OPINFO = 4
CASES = {
    "aten::triu": [
        ("f32[33,70]",),
        ("f32[2,5,4]{20,1,5}", -2),
        ("i64[7,9]", 3),
    ],
}
FAULTS = {
    "strictly above": (">= diagonal", "> diagonal"),
}
