"""With the number of rows and without; items of no rows; dimensions in another order."""

CASES = {
    "aten::_padded_dense_to_jagged_forward": [
        ("f32[3,6,2]", ["i64(0, 2, 2, 7)"], 7),
        ("f32[3,6,2]", ["i64(0, 2, 2, 7)"]),
        ("bf16[2,5]{1,2}", ["i32(0, 5, 6)"], 6),
        ("i64[2,4,3,2]{24,6,1,3}", ["i64(0, 1, 5)"], 5),
        ("f64[3,300,20]", ["i64(0, 300, 301, 500)"]),
    ],
}
FAULTS = {
    "the first item over and over": ("dense_ptr += item * plain_value(dense_steps[0])", "dense_ptr += item * 0"),
    "one row less": ("(row < end) & (row >= 0)", "(row < end - 1) & (row >= 0)"),
}
REFUSED = {"aten::_padded_dense_to_jagged_forward": [("f32[3,6,2]", ["i64(0, 7)"])]}
