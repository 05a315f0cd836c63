"""Masks."""

CASES = {
    "aten::_unsafe_masked_index": [
        ("f32[9,5]", "bool[4,5]", ["i64[4]<9"], 1.5),
        ("i64[4,5,6]", "bool[3,5]", ["i64[3]<4", None, "i64[3]<6"], 0),
        ("bf16[9]", "bool[4]", ["i64(-1, 2, 8, 0)"], -1),
    ],
}
REFUSED = {"aten::_unsafe_masked_index": [("u16[9]", "bool[4]", ["i64[4]<9"], 0)]}
