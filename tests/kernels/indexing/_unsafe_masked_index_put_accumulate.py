"""Masks."""

CASES = {
    "aten::_unsafe_masked_index_put_accumulate": [
        ("f32[9,5]", "bool[4,5]", ["i64[4]<9"], "f32[4,5]"),
        ("i64[4,5,6]", "bool[3,5]", ["i64[3]<4", None, "i64[3]<6"], "i64[3,5]"),
        ("bf16[9]", "bool[4]", ["i64(-1, 2, 8, -1)"], "bf16[4]"),
    ],
}
REFUSED = {"aten::_unsafe_masked_index_put_accumulate": [("u16[9]", "bool[4]", ["i64[4]<9"], "u16[4]")]}
